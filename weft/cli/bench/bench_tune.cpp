// weft bench tune: the tuner's result against every setting of its grid.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/output.h"
#include "weft/cli/perf/tune_report.h"
#include "weft/cli/perf/tune_request.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/temporary_folder.h"
#include "weft/cli/terminal/bar.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/measure/bench/tune_bench.h"

namespace weft::cli {
namespace {

using base::text;
using measure::Heat;
using measure::MeasuredSetting;
using measure::TuneBench;

constexpr double kMostLoss = 0.03;
constexpr std::size_t kShownSettings = 12;

struct TuneBenchOptions {
  RunArguments run{.default_recipe = "overlap_bench"};
  std::vector<std::string> vary;
  std::int64_t steps = 6;
  int repeats = 2, trials = 32, rounds = 3;
};

Bar bar_of(const TuneBench& bench) {
  return {.name = "what the tuner's setting takes longer than the best of the grid",
          .value = bench.loss(),
          .limit = kMostLoss};
}

std::string name_of(const MeasuredSetting& setting) {
  return setting.change.empty() ? "as it is" : setting.change;
}

const char* heat_word(Heat heat) {
  switch (heat) {
    case Heat::Every:
      return "every";
    case Heat::Near:
      return "near";
    case Heat::Final:
      return "final";
  }
  return "";
}

void print_tune_text(const TuneBench& bench) {
  const auto& whole = bench.tuning.whole;
  print_text(text("tuned: {:.2f} ms{}, in {}; the grid has {}\n",
                  bench.tuning.best_ms,
                  whole ? text(", {:.2f} times as fast as the start", whole->gain()) : "",
                  base::counted(std::ssize(bench.tuning.trials), "trial"),
                  base::counted(static_cast<std::int64_t>(bench.grid), "setting")));
  for (std::size_t i = 0; i < bench.settings.size(); ++i) {
    const MeasuredSetting& setting = bench.settings[i];
    if (i >= kShownSettings && !setting.is_tuned) continue;
    print_text(text("{:>10.2f} ms {:<6} {} {}\n",
                    setting.ms(),
                    heat_word(setting.heat()),
                    setting.is_tuned ? "<- tuner " : "         ",
                    name_of(setting)));
  }
  for (const std::string& failed : bench.failed) print_text("failed: " + failed + "\n");
  if (!bench.interrupted) print_text(to_text(bar_of(bench)) + "\n");
}

base::Json settings_json(const TuneBench& bench) {
  base::Json settings = base::Json::array();
  for (const MeasuredSetting& setting : bench.settings) {
    settings.push_back({{"change", setting.change},
                        {"step_ms", setting.ms()},
                        {"heat", heat_word(setting.heat())},
                        {"every_ms", setting.heat_ms[0]},
                        {"near_ms", setting.heat_ms[1]},
                        {"final_ms", setting.heat_ms[2]},
                        {"tuned", setting.is_tuned}});
  }
  return settings;
}

void print_tune_json(const TuneBench& bench) {
  base::Json json{
      {"interrupted", bench.interrupted},
      {"trials", bench.tuning.trials.size()},
      {"tuner_first_ms", bench.tuning.first_ms},
      {"tuner_best_ms", bench.tuning.best_ms},
      {"tuner_gain", bench.tuning.whole ? base::Json(bench.tuning.whole->gain()) : base::Json()},
      {"grid", bench.grid},
      {"settings", settings_json(bench)},
      {"failed", bench.failed}};
  if (!bench.interrupted) {
    json["tuned_ms"] = bench.tuned().ms();
    json["best_ms"] = bench.best().ms();
    json["loss"] = bench.loss();
    json["bars"] = base::Json::array({to_json(bar_of(bench))});
  }
  print_json(json);
}

void print_tune_bench(const TuneBench& bench, Format format) {
  switch (format) {
    case Format::Text:
      print_tune_text(bench);
      break;
    case Format::Json:
      print_tune_json(bench);
      break;
  }
}

int run_tune_bench(const TuneBenchOptions& options) {
  if (under_launcher()) {
    throw base::ConfigError("bench tune times ranks of one process: run it without mpirun");
  }
  const words::Resolution run = resolve(options.run);
  refuse_foreign_launcher(run);
  print_findings(run);
  const TemporaryFolder folder;
  ProgressLine line;
  measure::TuneBenchRequest request{
      .tune = {.config = run.config,
               .moves = asked_moves(options.vary),
               .steps = options.steps,
               .window = {.start = options.steps / 3},
               .repeats = options.repeats,
               .most_trials = options.trials,
               .folder = folder.path(),
               .stop = &catch_interrupts()},
      .rounds = options.rounds,
      .progress =
          [&](Heat heat, const std::string& what, int done, int of) {
            const std::string share = bar(double(done) / of, 24);
            line.show(text("{} {} {}/{} {}", share, heat_word(heat), done, of, what));
          },
      .log = [&](const std::string& heat) { line.log(heat); }};
  require_tunable(request.tune.config);
  request.tune.progress = [&](const std::string& what, std::int64_t step) {
    line.show(text("{} tuning: {}", bar(double(step) / double(options.steps), 24), what));
  };
  request.tune.told = [&](const measure::Trial& trial) { line.log(to_line(trial)); };
  const TuneBench bench = measure::bench_tune(request);
  line.clear();
  if (bench.interrupted && bench.tuning.trials.empty()) return stopped_bench(options.run.format);
  print_tune_bench(bench, options.run.format);
  if (bench.interrupted) {
    line.log("stopped before the end: what was measured until then, and no verdict");
    return interrupted_code();
  }
  return bar_of(bench).met() ? kGood : kFailed;
}

}  // namespace

void add_bench_tune(CLI::App& bench, Action& chosen) {
  CLI::App* tune = bench.add_subcommand(
      "tune",
      "what weft tune finds against the whole grid of what it may change; without a recipe, "
      "overlap_bench");
  auto options = std::make_shared<TuneBenchOptions>();
  add_run_arguments(*tune,
                    options->run,
                    "weft bench tune overlap_bench train.global_batch_size=16 "
                    "fabric.intra_node_gb_per_second=0.2");
  add_vary(*tune, options->vary);
  within(6,
         10000,
         tune->add_option("--steps",
                          options->steps,
                          "of each run of the tuner; a third of them warm up"))
      ->capture_default_str();
  within(1, 100, tune->add_option("--repeats", options->repeats, "of the tuner, see weft tune"))
      ->capture_default_str();
  within(1, 1000, tune->add_option("--trials", options->trials, "of the tuner, see weft tune"))
      ->capture_default_str();
  within(1,
         1000,
         tune->add_option("--rounds",
                          options->rounds,
                          "runs of the fastest settings and the tuner's, in turn"))
      ->capture_default_str();
  on_chosen(*tune, chosen, std::move(options), run_tune_bench);
}

}  // namespace weft::cli
