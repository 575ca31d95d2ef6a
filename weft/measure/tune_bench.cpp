#include "weft/measure/tune_bench.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/median.h"
#include "weft/base/text.h"
#include "weft/measure/timed_runs.h"
#include "weft/plan/tuning_grid.h"
#include "weft/rules/validate.h"

namespace weft::measure {
namespace {

bool is_same_run(const config::Config& one, const config::Config& other) {
  return plan::is_same_config(rules::judge(one).config, rules::judge(other).config);
}

class GridBench {
 public:
  explicit GridBench(const TuneBenchRequest& request) : request_(request) {}

  TuneBench run() {
    bench_.tuning = tune(request_.tune);
    if (bench_.tuning.interrupted) return stopped();
    grid_ = grid();
    const int finals =
        request_.rounds * std::min(request_.finalists, static_cast<int>(grid_.size()));
    runs_ = static_cast<int>(grid_.size()) + finals;
    for (std::size_t i = 0; i < grid_.size(); ++i) {
      MeasuredSetting& setting = bench_.settings.emplace_back();
      setting.change = to_text(grid_[i].move);
      setting.is_tuned = is_same_run(grid_[i].config, bench_.tuning.config);
      setting.first_ms = measure(i);
      if (is_stopped()) return stopped();
    }
    const std::vector<std::size_t> finalists = choose_finalists();
    for (int round = 0; round < request_.rounds; ++round) {
      for (const std::size_t i : finalists) {
        bench_.settings[i].final_ms.push_back(measure(i));
        if (is_stopped()) return stopped();
      }
    }
    std::ranges::stable_sort(bench_.settings, [](const auto& one, const auto& other) {
      const bool first = one.final_ms.empty(), second = other.final_ms.empty();
      return first == second ? one.ms() < other.ms() : second;
    });
    return std::move(bench_);
  }

 private:
  // Some moves are relative, as twice the micro-batch is: those of the tuner's setting count too.
  std::vector<plan::TuningMove> moves() const {
    if (!request_.tune.moves.empty()) return request_.tune.moves;
    std::vector<plan::TuningMove> all = plan::tuning_moves(request_.tune.config);
    for (const plan::TuningMove& move : plan::tuning_moves(bench_.tuning.config)) {
      if (std::ranges::find(all, move) == all.end()) all.push_back(move);
    }
    return all;
  }

  std::vector<plan::GridSetting> grid() const {
    std::vector<plan::GridSetting> settings = plan::tuning_grid(request_.tune.config, moves());
    const bool has_tuned = std::ranges::any_of(settings, [&](const plan::GridSetting& setting) {
      return is_same_run(setting.config, bench_.tuning.config);
    });
    if (!has_tuned) {
      settings.push_back({.move = {.sets = {{"as", "tuned"}}}, .config = bench_.tuning.config});
    }
    return settings;
  }

  bool is_stopped() const { return request_.tune.stop != nullptr && request_.tune.stop->load(); }
  TuneBench stopped() {
    bench_.interrupted = true;
    return std::move(bench_);
  }

  // The median step of one more run; of an interrupted one, or one that fails, none that counts.
  double measure(std::size_t i) {
    const std::string& change = bench_.settings[i].change;
    request_.progress(change.empty() ? "as it is" : change, done_, runs_);
    TimedRuns timed;
    timed.add({.config = grid_[i].config,
               .steps = request_.tune.steps,
               .warm_up = request_.tune.steps / 2,
               .folder = request_.tune.folder / base::text("grid{}", done_),
               .stop = request_.tune.stop,
               .progress = [](std::int64_t) {}});
    ++done_;
    return timed.empty() ? 0 : timed.median_ms();
  }

  std::vector<std::size_t> choose_finalists() const {
    std::vector<std::size_t> order(bench_.settings.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) {
      const MeasuredSetting& setting = bench_.settings[i];
      return std::pair(!setting.is_tuned, setting.first_ms);
    });
    order.resize(std::min(order.size(), static_cast<std::size_t>(request_.finalists)));
    return order;
  }

  const TuneBenchRequest& request_;
  std::vector<plan::GridSetting> grid_;
  TuneBench bench_;
  int done_ = 0, runs_ = 0;
};

}  // namespace

double MeasuredSetting::ms() const { return final_ms.empty() ? first_ms : base::median(final_ms); }

const MeasuredSetting& TuneBench::tuned() const {
  return *std::ranges::find_if(settings, &MeasuredSetting::is_tuned);
}

TuneBench bench_tune(const TuneBenchRequest& request) { return GridBench(request).run(); }

}  // namespace weft::measure
