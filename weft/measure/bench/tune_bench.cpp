#include "weft/measure/bench/tune_bench.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/casts.h"
#include "weft/base/error.h"
#include "weft/base/median.h"
#include "weft/base/text.h"
#include "weft/measure/runs/timed_runs.h"
#include "weft/plan/tuning/tuning_grid.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace {

using base::text;

bool runs_alike(const config::Config& one, const config::Config& other) {
  return plan::is_same_run(rules::judge(one).config, rules::judge(other).config);
}

std::int64_t warm_up_of(std::size_t heat) { return kHeatSteps[heat] > 1 ? 1 : 0; }
std::size_t timed_steps(std::size_t heat) {
  return static_cast<std::size_t>(kHeatSteps[heat] - warm_up_of(heat));
}

// Median over runs of `steps` steps of the run's median: a disturbed run counts once.
double median_of_runs(const std::vector<double>& ms, std::size_t steps) {
  std::vector<double> runs;
  for (auto first = ms.begin(); first != ms.end();) {
    const auto end =
        first + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(steps), ms.end() - first);
    runs.push_back(base::median({first, end}));
    first = end;
  }
  return base::median(std::move(runs));
}

std::string change_text(const std::string& change) { return change.empty() ? "as it is" : change; }

class GridBench {
 public:
  explicit GridBench(const TuneBenchRequest& request) : request_(request) {}

  TuneBench run() {
    bench_.tuning = tune(request_.tune);
    bench_.interrupted = bench_.tuning.is_interrupted();
    if (!is_stopped()) {
      note_grid();
      run_heat(Heat::Every, all(), 1);
      run_heat(Heat::Near, near(), 1);
      run_heat(Heat::Final, finalists(), request_.rounds);
    }
    std::erase_if(bench_.settings,
                  [](const MeasuredSetting& setting) { return setting.heat_ms.front().empty(); });
    if (!bench_.interrupted) require_tuned();
    std::ranges::stable_sort(bench_.settings, [](const auto& one, const auto& other) {
      return one.heat() == other.heat() ? one.ms() < other.ms() : one.heat() > other.heat();
    });
    return std::move(bench_);
  }

 private:
  void require_tuned() const {
    if (std::ranges::any_of(bench_.settings, &MeasuredSetting::is_tuned)) return;
    throw base::SystemError(
        text("the tuner's setting did not run again: {}", fmt::join(bench_.failed, "; ")));
  }

  // Moves include those of the tuner's setting, since some are relative (twice the micro-batch).
  std::vector<plan::TuningMove> moves() const {
    if (!request_.tune.moves.empty()) return request_.tune.moves;
    std::vector<plan::TuningMove> all = plan::tuning_moves(request_.tune.config);
    for (const plan::TuningMove& move : plan::tuning_moves(bench_.tuning.config)) {
      if (std::ranges::find(all, move) == all.end()) all.push_back(move);
    }
    return all;
  }

  void note_grid() {
    grid_ = plan::tuning_grid(request_.tune.config, moves());
    for (const plan::GridSetting& setting : grid_) {
      bench_.settings.push_back({.change = to_text(setting.move),
                                 .heat_ms = {},
                                 .is_tuned = runs_alike(setting.config, bench_.tuning.config)});
    }
    if (std::ranges::none_of(bench_.settings, &MeasuredSetting::is_tuned)) {
      grid_.push_back({.move = {}, .config = bench_.tuning.config});
      bench_.settings.push_back({.change = "as tuned", .heat_ms = {}, .is_tuned = true});
    }
    bench_.grid = grid_.size();
  }

  bool is_stopped() {
    const bool asked = request_.tune.stop != nullptr && request_.tune.stop->load();
    bench_.interrupted = bench_.interrupted || asked;
    return bench_.interrupted;
  }

  void run_heat(Heat heat, const std::vector<std::size_t>& settings, int rounds) {
    if (settings.empty()) return;
    const int of = rounds * static_cast<int>(settings.size());
    int done = 0;
    for (int round = 0; round < rounds; ++round) {
      for (const std::size_t i : settings) {
        if (is_stopped()) return;
        request_.progress(heat, change_text(bench_.settings[i].change), done++, of);
        measure(heat, i);
      }
    }
    if (!is_stopped() && request_.log) request_.log(summary(heat, settings));
  }

  void measure(Heat heat, std::size_t i) {
    const auto at = static_cast<std::size_t>(heat);
    MeasuredSetting& setting = bench_.settings[i];
    try {
      const std::vector<double> ms =
          untraced_steps({.config = grid_[i].config,
                          .steps = kHeatSteps[at],
                          .warm_up = warm_up_of(at),
                          .folder = request_.tune.folder / text("grid{}", runs_++),
                          .stop = request_.tune.stop,
                          .progress = {}});
      setting.heat_ms[at].insert(setting.heat_ms[at].end(), ms.begin(), ms.end());
    } catch (const base::SystemError& error) {
      bench_.failed.push_back(text("{}: {}", change_text(setting.change), error.what()));
    }
  }

  double ms_of(Heat heat, std::size_t i) const {
    const auto at = static_cast<std::size_t>(heat);
    const std::vector<double>& ms = bench_.settings[i].heat_ms[at];
    return ms.empty() ? std::numeric_limits<double>::infinity()
                      : median_of_runs(ms, timed_steps(at));
  }

  std::vector<std::size_t> all() const {
    std::vector<std::size_t> order(grid_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    return order;
  }

  // Settings measured in a heat, fastest first.
  std::vector<std::size_t> ranked(Heat heat) const {
    std::vector<std::size_t> order = all();
    std::erase_if(order, [&](std::size_t i) { return std::isinf(ms_of(heat, i)); });
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return ms_of(heat, i); });
    return order;
  }

  // First `most` settings, and the tuner's.
  std::vector<std::size_t> with_tuned(std::vector<std::size_t> order, std::size_t most) const {
    std::vector<std::size_t> kept;
    for (const std::size_t i : order) {
      if (kept.size() < most || bench_.settings[i].is_tuned) kept.push_back(i);
    }
    return kept;
  }

  std::vector<std::size_t> near() const {
    std::vector<std::size_t> order = ranked(Heat::Every);
    if (order.empty()) return order;
    const double most = kNearFastest * ms_of(Heat::Every, order.front());
    const auto as_near = static_cast<std::size_t>(
        std::ranges::count_if(order, [&](std::size_t i) { return ms_of(Heat::Every, i) <= most; }));
    return with_tuned(std::move(order), std::clamp(as_near, kFewestNear, kMostNear));
  }

  std::vector<std::size_t> finalists() const { return with_tuned(ranked(Heat::Near), kFinalists); }

  std::string summary(Heat heat, const std::vector<std::size_t>& settings) const {
    std::size_t best = settings.front();
    for (const std::size_t i : settings) {
      if (ms_of(heat, i) < ms_of(heat, best)) best = i;
    }
    return text("{} measured, {} each: the fastest {:.2f} ms  {}",
                base::counted(std::ssize(settings), "setting"),
                base::counted(kHeatSteps[static_cast<std::size_t>(heat)], "step"),
                ms_of(heat, best),
                change_text(bench_.settings[best].change));
  }

  const TuneBenchRequest& request_;
  std::vector<plan::GridSetting> grid_;  // parallel to the bench's settings
  TuneBench bench_;
  int runs_ = 0;
};

}  // namespace

Heat MeasuredSetting::heat() const {
  for (const Heat heat : {Heat::Final, Heat::Near}) {
    if (!heat_ms[static_cast<std::size_t>(heat)].empty()) return heat;
  }
  return Heat::Every;
}

double MeasuredSetting::ms() const {
  const auto last = static_cast<std::size_t>(heat());
  return median_of_runs(heat_ms[last], timed_steps(last));
}

const MeasuredSetting& TuneBench::tuned() const {
  return *std::ranges::find_if(settings, &MeasuredSetting::is_tuned);
}

TuneBench bench_tune(const TuneBenchRequest& request) { return GridBench(request).run(); }

}  // namespace weft::measure
