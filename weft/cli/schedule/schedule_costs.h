// Node costs of a schedule: from a file, from given rates, from the plan's price of the GPU, or
// from nominal rates of processor cores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"
#include "weft/plan/cost/nominal_costs.h"
#include "weft/plan/hardware/calibration.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::cli {

struct CostOptions {
  std::string costs, calibration;  // files
  std::optional<double> flops_per_second, gb_per_second;
  std::string program;  // priced program on a GPU; empty: the run's default
};

class ScheduleCosts {
 public:
  // ConfigError if a run for GPUs names none and this machine has none.
  ScheduleCosts(const CostOptions& options, const config::Config& config);

  // `config`: judged. `plans`: its pipeline ranks.
  exec::sim::CostTable of(const config::Config& config,
                          const grid::Grid& grid,
                          const std::vector<schedule::RankPlan>& plans) const;
  // Variant without files, whose rows belong to one order.
  exec::sim::CostTable by_rates(const config::Config& config,
                                const grid::Grid& grid,
                                const std::vector<schedule::RankPlan>& plans) const;
  const plan::Calibration& calibration() const { return calibration_; }
  std::string text(const config::Config& config) const;

 private:
  CostOptions options_;
  plan::Calibration calibration_;
  plan::NominalRates rates_;
  std::optional<plan::Hardware> hardware_;
};

}  // namespace weft::cli
