// The loop of `weft tune`: measure, take the change that the model expects most of, measure both in
// turn, keep it or go back, until none is left that is expected to pay.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"
#include "weft/measure/timing_window.h"
#include "weft/plan/tuning_moves.h"

namespace weft::measure {

enum class TrialEnd {
  Kept,
  Reverted,  // it was not faster by more than the noise
  Refused,   // by the rules, or it changes nothing here
  NotTried,  // the model expects it to be clearly slower
  Failed,    // it did not run to its end
};

struct Trial {
  plan::TuningMove move;
  std::string change;  // of the keys it sets, those that had another value
  std::optional<double> predicted_ms;
  double current_ms = 0;  // of the setting so far, measured beside it
  double step_ms = 0;
  double noise_ms = 0;  // differences up to this mean nothing
  TrialEnd end = TrialEnd::NotTried;
  std::string why;  // where it has no step_ms
};

struct TuneRequest {
  config::Config config;                // to begin with, not judged
  std::vector<plan::TuningMove> moves;  // none: those of the run, see tuning_moves.h
  std::int64_t steps = 12;              // of each run
  WindowOptions window{.start = 4};
  int repeats = 2;       // runs of each of the two, in turn; fewer where these leave no doubt
  int most_trials = 32;  // measured ones
  std::filesystem::path folder;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& what, std::int64_t step)> progress;
  std::function<void(const Trial& trial)> told;  // of each trial, when it is over
};

enum class TuningEnd {
  NothingLeft,  // no change is left that the model does not expect to be slower
  MostTrials,   // as many were measured as were asked for
  Interrupted,
};

struct Tuning {
  config::Config config;  // the best, as it is asked for
  double first_ms = 0;    // as it was at the very beginning, by one run
  double best_ms = 0;     // measured beside what it was held against last
  // How many times as fast as at the start: the product of what each kept change gained beside the
  // setting before it. A machine that becomes slower or faster meanwhile does not count.
  double gain = 1;
  std::vector<Trial> trials;
  exec::sim::CostTable costs;  // of the nodes of the setting that the model knows
  TuningEnd end = TuningEnd::NothingLeft;
  std::vector<std::string> untried;  // changes that were left when it ended early

  bool is_interrupted() const { return end == TuningEnd::Interrupted; }
};

// ConfigError where the config to begin with may not run here.
Tuning tune(const TuneRequest& request);

}  // namespace weft::measure
