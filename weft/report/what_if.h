// How long a traced run's step would be in another order: its own node costs, simulated.
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
  // `run` as the rules left it; traced steps of it that took `step_ms` in the mean. ConfigError
  // where the trace is not of that run.
  static WhatIf of_measured(const config::Config& run,
                            const std::vector<trace::Timeline>& traced,
                            double step_ms);
  // Of a step that was simulated itself, with all of its micro-batches: a rank for each pipeline
  // stage. Compute is as long beside communication as it was in the traced order.
  static WhatIf of_simulated(const config::Config& run, const std::vector<trace::Timeline>& traced);

  // The step from what its nodes cost, with no time between them.
  double replayed_ms() const { return ideal_seconds_(run_) * 1e3; }
  // By how much a step would be shorter with these words; none where nothing says so: the run is
  // refused, or would have nodes that were not measured.
  std::optional<double> gain_ms(std::span<const std::string> words) const;

 private:
  using SecondsOf = std::function<double(const config::Config&)>;
  enum class Must { Run, BeLegal };  // of a changed run: here, or on the GPUs it is planned for

  WhatIf(const config::Config& run, SecondsOf step, SecondsOf ideal, Must must)
      : run_(run), step_seconds_(std::move(step)), ideal_seconds_(std::move(ideal)), must_(must) {}

  config::Config run_;
  SecondsOf step_seconds_, ideal_seconds_;
  Must must_;
};

}  // namespace weft::report
