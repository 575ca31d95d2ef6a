#include "weft/cli/schedule/schedule_costs.h"

#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/plan/hardware_folder.h"
#include "weft/cli/plan/program_option.h"
#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/plan/hardware/calibration_text.h"
#include "weft/plan/hardware/run_hardware.h"
#include "weft/plan/price/simulated_run.h"

namespace weft::cli {
namespace {

namespace sim = exec::sim;
using schedule::RankPlan;

template <typename Parse>
auto parsed_file(const std::string& file, const Parse& parse) {
  try {
    return parse(base::read_text(file));
  } catch (const base::ConfigError& error) {
    throw base::ConfigError(base::text("{}: {}", file, error.what()));
  }
}

// Rows are by world rank; the first rank of a stage stands for the others.
sim::CostTable measured_costs(const std::string& file, const grid::Grid& grid) {
  const sim::CostTable all = parsed_file(file, sim::parse_costs);
  std::map<int, int> first_of_stage;
  for (int rank = grid.world() - 1; rank >= 0; --rank) {
    first_of_stage[grid.coordinate(rank).pp] = rank;
  }
  sim::CostTable by_stage;
  for (const auto& [stage, rank] : first_of_stage) {
    const auto rows = all.ranks().find(rank);
    if (rows == all.ranks().end()) {
      throw base::ConfigError(
          base::text("{}: no costs of rank {}, the first of pipeline rank {}", file, rank, stage));
    }
    for (const auto& [node, cost] : rows->second) by_stage.set(stage, node, cost);
  }
  return by_stage;
}

bool is_for_gpu(const config::Config& config) {
  return config.runtime.device == config::DeviceKind::Cuda || derive::is_on_gpu(config);
}

// True if a GPU without a file has advertised rates.
bool has_rates_alone(const config::Config& config) {
  if (!config.hardware.gpu) return false;
  const std::vector<std::string> known = plan::known_hardware(hardware_folder());
  const bool has_file = std::ranges::find(known, config::word(*config.hardware.gpu)) != known.end();
  return !has_file && derive::gpu_facts(config.hardware).tflops.has_value();
}

}  // namespace

ScheduleCosts::ScheduleCosts(const CostOptions& options, const config::Config& config)
    : options_(options) {
  if (!options.calibration.empty()) {
    calibration_ = parsed_file(options.calibration, plan::parse_calibration);
  }
  const bool is_given = options.flops_per_second || options.gb_per_second;
  if (is_given || !is_for_gpu(config) || has_rates_alone(config)) {
    if (!is_given) rates_ = plan::rates_of(config.hardware);
    if (options.flops_per_second) rates_.flops_per_second = *options.flops_per_second;
    if (options.gb_per_second) {
      rates_.link_bytes_per_second = rates_.network_bytes_per_second = *options.gb_per_second * 1e9;
    }
    return;
  }
  if (!options.costs.empty() || !options.calibration.empty()) return;
  hardware_ =
      plan::hardware_of_run(config, chosen_hardware("", config), asked_program(options.program));
  require_products(config, *hardware_);
}

sim::CostTable ScheduleCosts::of(const config::Config& config,
                                 const grid::Grid& grid,
                                 const std::vector<RankPlan>& plans) const {
  if (!options_.costs.empty()) return measured_costs(options_.costs, grid);
  if (!options_.calibration.empty()) {
    return plan::calibrated_costs(config, grid, plans, calibration_);
  }
  return by_rates(config, grid, plans);
}

sim::CostTable ScheduleCosts::by_rates(const config::Config& config,
                                       const grid::Grid& grid,
                                       const std::vector<RankPlan>& plans) const {
  return hardware_ ? plan::hardware_costs(config, grid, plans, *hardware_, {})
                   : plan::nominal_costs(config, grid, plans, rates_);
}

std::string ScheduleCosts::text(const config::Config& config) const {
  if (!options_.costs.empty()) {
    return options_.calibration.empty()
               ? base::text("from {}", options_.costs)
               : base::text("from {}, waits by {}", options_.costs, options_.calibration);
  }
  if (!options_.calibration.empty()) return base::text("by {}", options_.calibration);
  if (hardware_) {
    return base::text("of {} ({}), {}",
                      hardware_->name,
                      hardware_->summary,
                      plan::program_text(*hardware_));
  }
  const grid::Fabric fabric = derive::fabric_of(config);
  return base::text("nominal: {:g} FLOP/s, {}",
                    rates_.flops_per_second,
                    fabric.is_free()
                        ? base::text("{:g} GB/s links", rates_.link_bytes_per_second * 1e-9)
                        : grid::describe(fabric));
}

}  // namespace weft::cli
