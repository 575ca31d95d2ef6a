#include "weft/measure/bench/predict_bench.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/median.h"
#include "weft/base/text.h"
#include "weft/derive/derived.h"
#include "weft/exec/sim/measure.h"
#include "weft/measure/runs/perf_run.h"
#include "weft/measure/runs/rounds.h"
#include "weft/measure/runs/timed_runs.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace {

namespace sim = exec::sim;

void require_runs(const PredictRequest& request) {
  std::vector<std::string> complaints;
  for (const PredictCase& each : request.cases) {
    const rules::Verdict verdict = rules::judge(perf_config(each.config, request.steps));
    if (verdict.runs()) continue;
    complaints.push_back(base::text("{}: {}",
                                    each.name,
                                    verdict.errors.empty()
                                        ? verdict.missing.front().message
                                        : config::to_text(verdict.errors.front())));
  }
  if (!complaints.empty()) throw base::ConfigError(std::move(complaints));
}

// Predicted and measured node times in a step by kind, over the stages that have the kind.
std::vector<NodeKindTimes> kinds_of(const config::Config& config,
                                    const sim::CostTable& predicted,
                                    const std::vector<trace::Timeline>& timelines) {
  const grid::Grid grid(derive::layout_of(config));
  const std::vector<schedule::RankPlan> plans = schedule::plan_step(config, grid);
  std::map<std::pair<int, schedule::Node>, std::vector<double>> measured;  // by stage
  const sim::CostTable by_rank = sim::measure(timelines);
  for (const auto& [rank, rows] : by_rank.ranks()) {
    for (const auto& [node, cost] : rows) {
      measured[{grid.coordinate(rank).pp, node}].push_back(cost.seconds);
    }
  }
  std::map<std::string, NodeKindTimes> kinds;
  const double stages = base::number(std::ssize(plans));
  for (const schedule::RankPlan& plan : plans) {
    const int stage = plan.anatomy.pp_rank;
    for (const schedule::Entry& entry : plan.training.entries) {
      schedule::Node row = entry.node;
      row.micro_batch = schedule::kNone;
      NodeKindTimes& times = kinds[plan::kind_of_node(row)];
      times.nodes += 1 / stages;
      times.predicted_seconds += predicted.find(stage, row)->seconds / stages;
      const auto found = measured.find({stage, row});
      if (found == measured.end()) continue;
      double sum = 0;
      for (const double seconds : found->second) sum += seconds;
      times.measured_seconds += sum / base::number(std::ssize(found->second)) / stages;
    }
  }
  std::vector<NodeKindTimes> all;
  for (auto& [kind, times] : kinds) {
    times.kind = kind;
    all.push_back(std::move(times));
  }
  return all;
}

class RunningPredictions {
 public:
  explicit RunningPredictions(const PredictRequest& request) : request_(request) {}

  PredictBench run() {
    require_runs(request_);
    PredictBench bench;
    std::optional<CalibrationResult> calibrated =
        run_calibration({.config = request_.calibrating,
                         .steps = request_.steps,
                         .rounds = request_.rounds,
                         .folder = request_.folder,
                         .stop = request_.stop,
                         .progress = [&](const std::string& what, std::int64_t) { tell(what); }});
    bench.interrupted = !calibrated;
    if (!calibrated) return bench;
    bench.calibrated = std::move(*calibrated);
    done_ = 1;
    // Predictions come before any measurement.
    std::vector<plan::CalibratedStep> steps;
    for (const PredictCase& each : request_.cases) {
      steps.push_back(
          plan::calibrated_step(rules::judge(each.config).config, bench.calibrated.calibration));
    }
    std::vector<TimedRuns> timed(request_.cases.size());
    Rounds rounds({.rounds = request_.rounds, .stop = request_.stop});
    for (std::size_t i = 0; i < request_.cases.size(); ++i) {
      rounds.time([&, i] { measure(request_.cases[i], timed[i]); });
    }
    try {
      rounds.run();
    } catch (const Stopped&) {
      bench.interrupted = true;
    }
    for (std::size_t i = 0; i < request_.cases.size(); ++i) {
      if (timed[i].empty()) continue;
      const PredictCase& each = request_.cases[i];
      bench.predictions.push_back(
          {.name = each.name,
           .group = each.group,
           .predicted_seconds = steps[i].seconds,
           .measured_seconds = timed[i].median_ms() * 1e-3,
           .step_ms = timed[i].ms(),
           .kinds =
               kinds_of(rules::judge(each.config).config, steps[i].costs, timed[i].timelines())});
    }
    return bench;
  }

 private:
  void tell(const std::string& what) const {
    const int of = 1 + request_.rounds * static_cast<int>(request_.cases.size());
    request_.progress(what, done_, of);
  }

  void measure(const PredictCase& each, TimedRuns& timed) {
    tell(each.name);
    timed.add({.config = each.config,
               .steps = request_.steps,
               .warm_up = request_.steps / 2,
               .folder = request_.folder / base::text("run{}", done_),
               .stop = request_.stop,
               .progress = [&](std::int64_t) { tell(each.name); }});
    ++done_;
  }

  const PredictRequest& request_;
  int done_ = 0;
};

}  // namespace

double PredictBench::median_error() const {
  std::vector<double> errors;
  for (const Prediction& each : predictions) errors.push_back(std::abs(each.error()));
  return base::median(errors);
}

double PredictBench::worst_error() const {
  double worst = 0;
  for (const Prediction& each : predictions) worst = std::max(worst, std::abs(each.error()));
  return worst;
}

std::vector<TopOfGroup> PredictBench::tops() const {
  std::map<std::string, std::vector<const Prediction*>> groups;
  for (const Prediction& each : predictions) groups[each.group].push_back(&each);
  std::vector<TopOfGroup> all;
  for (const auto& [name, members] : groups) {
    if (members.size() < 2) continue;
    const Prediction& predicted =
        **std::ranges::min_element(members, {}, [](const Prediction* each) {
          return each->predicted_seconds;
        });
    const Prediction& measured =
        **std::ranges::min_element(members, {}, [](const Prediction* each) {
          return each->measured_seconds;
        });
    all.push_back({.group = name,
                   .predicted = predicted.name,
                   .measured = measured.name,
                   .loss = predicted.measured_seconds / measured.measured_seconds - 1});
  }
  return all;
}

PredictBench bench_predict(const PredictRequest& request) {
  return RunningPredictions(request).run();
}

}  // namespace weft::measure
