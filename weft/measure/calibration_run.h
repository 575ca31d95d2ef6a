// One run that tells what a machine takes: some steps in the plain order, traced at the end, and
// the same model in an overlapped order, in turn.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/calibration.h"

namespace weft::measure {

struct CalibrationRequest {
  config::Config config;  // not judged; its order is the one that is traced
  std::int64_t steps = 10;
  int rounds = 1;                // runs of each order, in turn
  std::filesystem::path folder;  // for the runs
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& what, std::int64_t step)> progress;
};

struct CalibrationResult {
  plan::Calibration calibration;
  double step_seconds = 0;                   // measured
  std::optional<double> overlapped_seconds;  // of the overlapped order, where it is legal
};

// The same model with communication beside compute, where the rules allow one.
std::optional<config::Config> overlapped(const config::Config& config, std::int64_t steps);

// None where it was told to stop. ConfigError where the config may not run.
std::optional<CalibrationResult> run_calibration(const CalibrationRequest& request);

}  // namespace weft::measure
