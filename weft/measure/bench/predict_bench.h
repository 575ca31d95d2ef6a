// Predictions against measurements: one calibration, then many runs, each predicted and measured,
// alternating.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/measure/runs/calibration_run.h"

namespace weft::measure {

struct PredictCase {
  std::string name;
  std::string group;      // cases compared with each other: the fastest one is determined
  config::Config config;  // not judged
};

struct PredictRequest {
  config::Config calibrating;  // run for the calibration
  std::vector<PredictCase> cases;
  std::int64_t steps = 8;  // steps of each run; the first half warms up
  int rounds = 3;
  std::filesystem::path folder;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& what, int run, int of)> progress;
};

// All nodes of one kind ("F.experts") in a step of one rank; mean over pipeline stages.
struct NodeKindTimes {
  std::string kind;
  double nodes = 0;
  double predicted_seconds = 0, measured_seconds = 0;
};

struct Prediction {
  std::string name, group;
  double predicted_seconds = 0;
  double measured_seconds = 0;  // median
  std::vector<double> step_ms;  // all timed steps
  std::vector<NodeKindTimes> kinds;

  double error() const { return predicted_seconds / measured_seconds - 1; }
};

// Fastest run of a group by prediction and by measurement.
struct TopOfGroup {
  std::string group, predicted, measured;
  double loss = 0;  // relative extra time of the predicted fastest over the measured fastest
};

struct PredictBench {
  CalibrationResult calibrated;
  std::vector<Prediction> predictions;
  bool interrupted = false;

  double median_error() const;  // median of absolute errors
  double worst_error() const;
  std::vector<TopOfGroup> tops() const;  // for groups of two or more
};

// ConfigError if a case cannot run here.
PredictBench bench_predict(const PredictRequest& request);

}  // namespace weft::measure
