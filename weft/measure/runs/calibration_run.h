// Run that calibrates the cost model on a machine: steps in the plain order with a trace at the
// end, alternating with the same model in an overlapped order.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/hardware/calibration.h"

namespace weft::measure {

struct CalibrationRequest {
  config::Config config;  // not judged; its order is traced
  std::int64_t steps = 10;
  int rounds = 1;                // runs of each order, alternating
  std::filesystem::path folder;  // for the run folders
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& what, std::int64_t step)> progress;
};

struct CalibrationResult {
  plan::Calibration calibration;
  double step_seconds = 0;  // measured
  // Step time of the overlapped order; nullopt: the rules refuse it.
  std::optional<double> overlapped_seconds;
};

// Variant of the config with communication under compute; nullopt: the rules refuse it.
std::optional<config::Config> overlapped(const config::Config& config, std::int64_t steps);

// nullopt: stopped. ConfigError if the config cannot run here.
std::optional<CalibrationResult> run_calibration(const CalibrationRequest& request);

}  // namespace weft::measure
