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
#include "weft/measure/timed_runs.h"
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

// Two settings whose runs were measured in turn: medians of their steps.
struct Beside {
  double before_ms = 0, after_ms = 0;
  double noise_ms = 0;  // three standard errors of the difference: up to this it means nothing

  double gain() const { return before_ms / after_ms; }
  bool is_faster() const { return before_ms - after_ms > noise_ms; }
  // The noise exceeds a tenth of the step: gains of some percent cannot be seen.
  bool is_too_noisy() const { return noise_ms > 0.1 * before_ms; }
};

struct Trial {
  plan::TuningMove move;
  std::string change;  // of the keys it sets, those that had another value
  std::optional<double> predicted_ms;
  Beside times;  // of the setting so far, and with the change
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
  // The steps of one run; a test gives times of its own.
  std::function<std::vector<double>(const TimedRunRequest&)> steps_of_run = untraced_steps;
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
  // The setting to begin with and the best, measured in turn. With one kept change that is its
  // trial; after several, the two are measured again. nullopt: no change was kept, or the loop was
  // interrupted after several.
  std::optional<Beside> whole;
  std::vector<Trial> trials;
  exec::sim::CostTable costs;  // of the nodes of the setting that the model knows
  TuningEnd end = TuningEnd::NothingLeft;
  std::vector<std::string> untried;  // changes that were left when it ended early

  bool is_interrupted() const { return end == TuningEnd::Interrupted; }
};

// ConfigError where the config to begin with may not run here.
Tuning tune(const TuneRequest& request);

}  // namespace weft::measure
