// Loop of `weft tune`: measure, take the change with the best prediction, measure both settings
// alternately, keep or revert. It ends when no change is expected to pay.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"
#include "weft/measure/runs/timed_runs.h"
#include "weft/measure/runs/timing_window.h"
#include "weft/plan/tuning/tuning_moves.h"

namespace weft::measure {

enum class TrialEnd {
  Kept,
  Reverted,  // the gain was within the noise
  Refused,   // refused by the rules, or without effect here
  NotTried,  // predicted to be clearly slower
  Failed,    // the run failed
};

// Two settings measured in alternating runs: medians of their steps.
struct Beside {
  double before_ms = 0, after_ms = 0;
  double noise_ms = 0;  // three standard errors of the difference; smaller differences are noise

  double gain() const { return before_ms / after_ms; }
  bool is_faster() const { return before_ms - after_ms > noise_ms; }
  // True if the noise exceeds a tenth of the step: gains of a few percent are invisible.
  bool is_too_noisy() const { return noise_ms > 0.1 * before_ms; }
};

struct Trial {
  plan::TuningMove move;
  std::string change;  // changed keys with their new values
  std::optional<double> predicted_ms;
  Beside times;  // current setting, and with the change
  TrialEnd end = TrialEnd::NotTried;
  std::string why;  // reason, without a time
};

struct TuneRequest {
  config::Config config;                // initial config; not judged
  std::vector<plan::TuningMove> moves;  // empty: the moves of the run, see tuning_moves.h
  std::int64_t steps = 12;              // steps of each run
  WindowOptions window{.start = 4};
  int repeats = 2;  // runs of each of the two settings, alternating; fewer if the verdict is clear
  int most_trials = 32;  // limit of measured trials
  std::filesystem::path folder;
  // Measures one run; tests replace it.
  std::function<std::vector<double>(const TimedRunRequest&)> steps_of_run = untraced_steps;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string& what, std::int64_t step)> progress;
  std::function<void(const Trial& trial)> told;  // called after each trial
};

enum class TuningEnd {
  NothingLeft,  // all remaining changes are predicted to be slower
  MostTrials,   // the limit of trials is reached
  Interrupted,
};

struct Tuning {
  config::Config config;  // best config, as the user would write it
  double first_ms = 0;    // initial setting, one run
  double best_ms = 0;     // measured in its last comparison
  // Initial setting against the best, measured alternately. With one kept change it is that trial;
  // with several the two are measured again. nullopt: no change was kept, or interrupted after
  // several.
  std::optional<Beside> whole;
  std::vector<Trial> trials;
  exec::sim::CostTable costs;  // node costs of the setting that the model knows
  TuningEnd end = TuningEnd::NothingLeft;
  std::vector<std::string> untried;  // remaining changes if it ended early

  bool is_interrupted() const { return end == TuningEnd::Interrupted; }
};

// ConfigError if the initial config cannot run here.
Tuning tune(const TuneRequest& request);

}  // namespace weft::measure
