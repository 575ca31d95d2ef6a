// Predicted beside measured: one calibration, then steps of many runs, each first predicted and
// then measured, all in turn.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/measure/calibration_run.h"

namespace weft::measure {

struct PredictCase {
  std::string name;
  std::string group;      // cases whose steps are held against each other: which is the fastest
  config::Config config;  // not judged
};

struct PredictRequest {
  config::Config calibrating;  // the run to calibrate by
  std::vector<PredictCase> cases;
  std::int64_t steps = 8;  // of each run; the first half warm up
  int rounds = 3;
  std::filesystem::path folder;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& what, int run, int of)> progress;
};

// All nodes of one kind ("F.experts") in a step of one rank; the mean over pipeline stages.
struct NodeKindTimes {
  std::string kind;
  double nodes = 0;
  double predicted_seconds = 0, measured_seconds = 0;
};

struct Prediction {
  std::string name, group;
  double predicted_seconds = 0;
  double measured_seconds = 0;  // median
  std::vector<double> step_ms;  // all that were timed
  std::vector<NodeKindTimes> kinds;

  double error() const { return predicted_seconds / measured_seconds - 1; }
};

// The fastest of a group as predicted, and as measured.
struct TopOfGroup {
  std::string group, predicted, measured;
  double loss = 0;  // what the predicted one takes longer than the measured one, as a share
};

struct PredictBench {
  CalibrationResult calibrated;
  std::vector<Prediction> predictions;
  bool interrupted = false;

  double median_error() const;  // of what errors are without their signs
  double worst_error() const;
  std::vector<TopOfGroup> tops() const;  // of groups of two or more
};

// ConfigError where a case may not run here.
PredictBench bench_predict(const PredictRequest& request);

}  // namespace weft::measure
