// Step time of a traced run in another order: simulated with its own node costs.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/trace/span.h"

namespace weft::report {

class WhatIf {
 public:
  // `run`: settled by the rules; its traced steps took `step_ms` on average. ConfigError if the
  // trace belongs to another run.
  static WhatIf of_measured(const config::Config& run,
                            const std::vector<trace::Timeline>& traced,
                            double step_ms);
  // Variant for a simulated step with all its micro-batches, one rank per pipeline stage. Compute
  // beside communication keeps the duration of the traced order.
  static WhatIf of_simulated(const config::Config& run, const std::vector<trace::Timeline>& traced);

  // Step time from its node costs, without gaps.
  double replayed_ms() const { return ideal_seconds_(run_) * 1e3; }
  // Time saved per step with these words. nullopt: unknown, because the rules refuse the run or it
  // has unmeasured nodes.
  std::optional<double> gain_ms(std::span<const std::string> words) const;

 private:
  using SecondsOf = std::function<double(const config::Config&)>;
  // Requirement on a changed run: runs here, or is legal on the planned GPUs.
  enum class Must { Run, BeLegal };

  WhatIf(const config::Config& run, SecondsOf step, SecondsOf ideal, Must must)
      : run_(run), step_seconds_(std::move(step)), ideal_seconds_(std::move(ideal)), must_(must) {}

  config::Config run_;
  SecondsOf step_seconds_, ideal_seconds_;
  Must must_;
};

}  // namespace weft::report
