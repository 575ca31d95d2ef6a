#include "weft/measure/runs/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/median.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/measure.h"
#include "weft/measure/runs/perf_run.h"
#include "weft/measure/runs/timed_runs.h"
#include "weft/plan/hardware/compute_rates.h"
#include "weft/plan/price/overlap_prediction.h"
#include "weft/plan/tuning/tuning_grid.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace {

using plan::MoveKind;
using plan::TuningMove;

// Predicted slowdown up to which a change is still tried: the model only guides.
constexpr double kWorthTrying = 1.1;
constexpr double kStandardErrors = 3;
// Slowdown up to which two single changes may still pay together.
constexpr double kNearlyAsFast = 1.05;
constexpr int kMostPairs = 4;
// Steps before the traced ones.
constexpr std::int64_t kBeforeTrace = 2;

// Step times of one setting in several runs.
struct Times {
  std::vector<double> ms;

  double median() const { return base::median(ms); }
  double squared_error() const {
    if (ms.size() < 2) return std::numeric_limits<double>::infinity();
    const Steady steady = steady_state(ms, {.first = 0, .end = std::ssize(ms)});
    return steady.deviation * steady.deviation / base::number(std::ssize(ms));
  }
};

double noise_of(const Times& one, const Times& other) {
  return kStandardErrors * std::sqrt(one.squared_error() + other.squared_error());
}

Beside times_beside(const Times& now, const Times& then) {
  return {.before_ms = now.median(), .after_ms = then.median(), .noise_ms = noise_of(now, then)};
}

// True if more runs would not change the verdict. Keeping needs more evidence than reverting.
bool is_decided(const Times& now, const Times& then) {
  if (now.ms.empty() || then.ms.empty()) return false;
  const Beside times = times_beside(now, then);
  const double gain = times.before_ms - times.after_ms;
  return gain > 2 * times.noise_ms || -gain > times.noise_ms;
}

class Tuner {
 public:
  explicit Tuner(const TuneRequest& request) : request_(request), current_(request.config) {}

  Tuning run() {
    rules::validate(perf_config(current_, request_.steps));
    Times first;
    add_run(first, current_, "as it is");
    if (is_stopped()) return stopped();
    result_.first_ms = result_.best_ms = first.median();
    learn(current_, first.median());
    if (is_stopped()) return stopped();
    while (measured_ < request_.most_trials) {
      std::optional<Trial> next = best_guess();
      if (!next) next = best_pair();
      if (!next) break;
      take(*next);
      if (is_stopped()) return stopped();
    }
    if (measured_ >= request_.most_trials) {
      result_.end = TuningEnd::MostTrials;
      result_.untried = untried();
      if (result_.untried.empty()) result_.end = TuningEnd::NothingLeft;
    }
    if (kept_ > 1) measure_whole();
    for (Trial& trial : left_) tell(std::move(trial));
    return finished();
  }

 private:
  // Results of a run of the reference setting.
  struct Known {
    config::Config config;
    std::vector<trace::Timeline> timelines;
    double ms = 0;
  };

  bool is_stopped() const { return request_.stop != nullptr && request_.stop->load(); }
  Tuning stopped() {
    result_.end = TuningEnd::Interrupted;
    result_.untried = untried();
    return finished();
  }
  Tuning finished() {
    result_.config = current_;
    result_.costs = costs_;
    return std::move(result_);
  }

  // Untried changes to the current setting: legal, effective, neither measured nor predicted to be
  // slower.
  std::vector<std::string> untried() const {
    std::vector<std::string> changes;
    const config::Config now = rules::judge(perf_config(current_, request_.steps)).config;
    for (const TuningMove& move : moves()) {
      if (std::ranges::find(done_, move) != done_.end()) continue;
      if (std::ranges::find(left_, move, &Trial::move) != left_.end()) continue;
      const config::Config asked = plan::with_move(current_, move);
      const rules::Verdict verdict = rules::judge(perf_config(asked, request_.steps));
      if (!verdict.runs() || plan::is_same_run(verdict.config, now)) continue;
      changes.push_back(changed(move, asked));
    }
    return changes;
  }

  void tell(Trial trial) {
    if (request_.told) request_.told(trial);
    result_.trials.push_back(std::move(trial));
  }

  void add_run(Times& times, const config::Config& config, const std::string& what) {
    const std::vector<double> ms =
        request_.steps_of_run({.config = config,
                               .steps = request_.steps,
                               .warm_up = timing_window(request_.steps, request_.window).first,
                               .folder = next_folder(),
                               .stop = request_.stop,
                               .progress = [&](std::int64_t step) { show(what, step); }});
    times.ms.insert(times.ms.end(), ms.begin(), ms.end());
  }

  std::vector<trace::Timeline> trace(const config::Config& config) {
    PerfRun run =
        run_perf({.config = rules::validate(perf_config(config, kBeforeTrace)).judged.value(),
                  .steps = kBeforeTrace,
                  .run_dir = next_folder(),
                  .stop = request_.stop,
                  .progress = [&](const train::StepRecord& record) {
                    show("for the trace", record.iteration);
                  }});
    return std::move(run.timelines);
  }

  std::filesystem::path next_folder() { return request_.folder / base::text("run{}", ++runs_); }
  void show(const std::string& what, std::int64_t step) const {
    if (request_.progress) request_.progress(what, step);
  }

  // Makes this setting the reference of the model.
  void learn(const config::Config& config, double ms) {
    std::vector<trace::Timeline> timelines = trace(config);
    if (is_stopped()) return;
    known_ = {.config = rules::judge(config).config, .timelines = std::move(timelines), .ms = ms};
    costs_ = exec::sim::measure(known_.timelines);
    prediction_.emplace(known_.config,
                        derive::fabric_of(known_.config),
                        known_.timelines,
                        known_.ms * 1e-3);
    rates_ = plan::rates_by_compute(known_.config, prediction_->compute_seconds());
  }

  // Prediction relative to the measured current setting, at least its compute time.
  double predict_ms(const config::Config& candidate, MoveKind kind) const {
    const config::Config now = rules::judge(current_).config;
    const double step = prediction_->step_seconds(now);
    const double change = kind == MoveKind::Order ? prediction_->step_seconds(candidate) / step
                                                  : plan::nominal_step_seconds(candidate, rates_) /
                                                        plan::nominal_step_seconds(now, rates_);
    const double computed = prediction_->compute_seconds() *
                            plan::nominal_compute_seconds(candidate, rates_) /
                            plan::nominal_compute_seconds(known_.config, rates_);
    return result_.best_ms * std::max(change, computed / step);
  }

  // Trial with the best prediction; reports the impossible ones on the way.
  std::optional<Trial> best_guess() {
    left_.clear();
    std::optional<Trial> best;
    for (const TuningMove& move : moves()) {
      if (std::ranges::find(done_, move) != done_.end()) continue;
      std::optional<Trial> trial = consider(move);
      if (!trial) continue;
      if (*trial->predicted_ms > kWorthTrying * result_.best_ms) {
        trial->why = "the model expects it to be slower";
        left_.push_back(std::move(*trial));
      } else if (!best || *trial->predicted_ms < *best->predicted_ms) {
        best = std::move(trial);
      }
    }
    return best;
  }

  static bool share_a_key(const TuningMove& one, const TuningMove& other) {
    return std::ranges::any_of(one.sets, [&](const auto& set) {
      return std::ranges::any_of(other.sets,
                                 [&](const auto& its) { return its.first == set.first; });
    });
  }

  // Pairs two changes that each lost little, when no single change pays.
  std::optional<Trial> best_pair() {
    if (pairs_ >= kMostPairs) return std::nullopt;
    std::optional<Trial> best;
    for (std::size_t i = 0; i < near_.size(); ++i) {
      for (std::size_t k = i + 1; k < near_.size(); ++k) {
        if (share_a_key(near_[i], near_[k])) continue;
        const TuningMove both = plan::joined(near_[i], near_[k]);
        if (std::ranges::find(done_, both) != done_.end()) continue;
        std::optional<Trial> trial = consider(both);
        if (!trial || *trial->predicted_ms > kWorthTrying * result_.best_ms) continue;
        if (!best || *trial->predicted_ms < *best->predicted_ms) best = std::move(trial);
      }
    }
    if (best) ++pairs_;
    return best;
  }

  std::vector<TuningMove> moves() const {
    return request_.moves.empty() ? plan::tuning_moves(current_) : request_.moves;
  }

  std::optional<Trial> consider(const TuningMove& move) {
    const config::Config asked = plan::with_move(current_, move);
    Trial trial{.move = move, .change = changed(move, asked)};
    const rules::Verdict verdict = rules::judge(perf_config(asked, request_.steps));
    if (!verdict.runs()) {
      trial.end = TrialEnd::Refused;
      trial.why = verdict.errors.empty() ? verdict.missing.front().message
                                         : config::to_text(verdict.errors.front());
    } else if (plan::is_same_run(verdict.config,
                                 rules::judge(perf_config(current_, request_.steps)).config)) {
      return std::nullopt;  // already in effect
    } else {
      trial.predicted_ms = predict_ms(rules::judge(asked).config, move.kind);
      return trial;
    }
    if (std::ranges::find(refused_, move) == refused_.end()) {
      refused_.push_back(move);
      tell(std::move(trial));
    }
    return std::nullopt;
  }

  std::string changed(const TuningMove& move, const config::Config& asked) const {
    TuningMove different{.sets = {}, .kind = move.kind};
    for (const auto& set : move.sets) {
      const config::Field& field = *config::find_field(set.first);
      if (field.get(current_) != field.get(asked)) different.sets.push_back(set);
    }
    return to_text(different);
  }

  void take(Trial& trial) {
    const config::Config asked = plan::with_move(current_, trial.move);
    std::optional<Beside> times;
    ++measured_;
    done_.push_back(trial.move);
    tried_.push_back(trial.move);
    try {
      times = in_turn({"as it is", current_}, {trial.change, asked});
    } catch (const base::SystemError& error) {
      trial.end = TrialEnd::Failed;
      trial.why = error.what();
      return tell(std::move(trial));
    }
    if (!times) {
      done_.pop_back();  // it has no verdict
      return;
    }
    trial.times = *times;
    const bool is_faster = times->is_faster();
    trial.end = is_faster ? TrialEnd::Kept : TrialEnd::Reverted;
    result_.best_ms = is_faster ? times->after_ms : times->before_ms;
    if (is_faster) {
      keep(asked, trial);
    } else if (times->after_ms <= kNearlyAsFast * times->before_ms) {
      note_near(trial.move);
    }
    tell(std::move(trial));
  }

  struct Setting {
    std::string what;
    const config::Config& config;
  };

  // Alternates runs of two settings; nullopt: stopped before both were measured.
  std::optional<Beside> in_turn(const Setting& one, const Setting& other) {
    Times now, then;
    for (int i = 0; i < request_.repeats && !is_stopped() && !is_decided(now, then); ++i) {
      add_run(now, one.config, one.what);
      if (!is_stopped()) add_run(then, other.config, other.what);
    }
    if (is_stopped() || now.ms.empty() || then.ms.empty()) return std::nullopt;
    return times_beside(now, then);
  }

  // Measures the first setting against the last: after several kept changes no trial did.
  void measure_whole() {
    const std::optional<Beside> times =
        in_turn({"as it was", request_.config}, {"the best", current_});
    if (!times) {
      result_.end = TuningEnd::Interrupted;
      return;
    }
    result_.whole = times;
    result_.best_ms = times->after_ms;
  }

  void note_near(const TuningMove& move) {
    const std::vector<TuningMove> single = moves();
    if (std::ranges::find(single, move) == single.end()) return;  // a pair
    if (std::ranges::find(near_, move) == near_.end()) near_.push_back(move);
  }

  void keep(const config::Config& asked, const Trial& trial) {
    const TuningMove move = trial.move;
    current_ = asked;
    result_.whole = ++kept_ == 1 ? std::optional(trial.times) : std::nullopt;
    std::erase_if(near_, [&](const TuningMove& other) { return share_a_key(other, move); });
    if (move.kind == MoveKind::Work) learn(current_, trial.times.after_ms);
    // A change that lost beside the old setting may win beside the new one: each gets a second
    // chance.
    std::erase_if(done_, [&](const TuningMove& other) {
      return other != move && std::ranges::count(tried_, other) < 2;
    });
  }

  const TuneRequest& request_;
  config::Config current_;
  Known known_;
  std::optional<plan::OverlapPrediction> prediction_;
  plan::NominalRates rates_;
  exec::sim::CostTable costs_;
  std::vector<TuningMove> done_, tried_, refused_;
  std::vector<TuningMove> near_;  // lost little beside the current setting
  std::vector<Trial> left_;       // not tried beside the current setting
  int runs_ = 0, measured_ = 0, pairs_ = 0, kept_ = 0;
  Tuning result_;
};

}  // namespace

Tuning tune(const TuneRequest& request) { return Tuner(request).run(); }

}  // namespace weft::measure
