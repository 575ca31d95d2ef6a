// weft bench tune: the tuner's result against every setting of its grid.
#include "weft/base/text.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/perf/tune_report.h"
#include "weft/cli/perf/tune_request.h"
#include "weft/cli/run/temporary_folder.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/measure/bench/tune_bench.h"
#include "weft/measure/runs/rounds.h"

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

report::Document document_of(const TuneBench& bench) {
  const auto& whole = bench.tuning.whole;
  report::Document document;
  document.json("interrupted", bench.interrupted);
  document.line(text("{}; the grid has {}",
                     base::counted(std::ssize(bench.tuning.trials), "trial"),
                     base::counted(static_cast<std::int64_t>(bench.grid), "setting")));
  document.json("trials", bench.tuning.trials.size());
  document.value("tuner_first_ms", "start", bench.tuning.first_ms, {2, "ms"});
  document.value("tuner_best_ms", "tuned", bench.tuning.best_ms, {2, "ms"});
  document.value("tuner_gain",
                 "gain",
                 whole ? base::Json(whole->gain()) : base::Json(),
                 {},
                 whole ? "times as fast as the start" : "no change is kept");
  document.json("grid", bench.grid);
  report::Table& settings = document.table("settings",
                                           {{"change", ""},
                                            {"step_ms", "step ms"},
                                            {"heat", "heat"},
                                            {"every_ms", ""},
                                            {"near_ms", ""},
                                            {"final_ms", ""},
                                            {"tuned", "tuned"},
                                            {"", "change"}});
  for (std::size_t i = 0; i < bench.settings.size(); ++i) {
    const MeasuredSetting& setting = bench.settings[i];
    const bool is_shown = i < kShownSettings || setting.is_tuned;
    settings.row({setting.change,
                  setting.ms(),
                  heat_word(setting.heat()),
                  setting.heat_ms[0],
                  setting.heat_ms[1],
                  setting.heat_ms[2],
                  setting.is_tuned,
                  name_of(setting)},
                 is_shown ? report::Table::In::Both : report::Table::In::JsonOnly);
  }
  document.json("failed", bench.failed);
  for (const std::string& failed : bench.failed) document.line("failed: " + failed);
  if (bench.interrupted) return document;
  document.json("tuned_ms", bench.tuned().ms());
  document.json("best_ms", bench.best().ms());
  document.json("loss", bench.loss());
  document.bars({{.name = "what the tuner's setting takes longer than the best of the grid",
                  .value = bench.loss(),
                  .limit = kMostLoss}});
  return document;
}

int run_tune_bench(const TuneBenchOptions& options) {
  const words::Resolution run = resolve_bench(options.run, "bench tune times ranks of one process");
  require_tunable(run.config);
  const TemporaryFolder folder;
  bool is_partial = false;
  const int code = run_bench(options.run.format, [&](ProgressLine& line) {
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
    request.tune.progress = [&](const std::string& what, std::int64_t step) {
      line.show(text("{} tuning: {}", bar(double(step) / double(options.steps), 24), what));
    };
    request.tune.told = [&](const measure::Trial& trial) { line.log(to_line(trial)); };
    const TuneBench bench = measure::bench_tune(request);
    if (bench.interrupted && bench.tuning.trials.empty()) throw measure::Stopped{};
    is_partial = bench.interrupted;
    if (is_partial) {
      line.log("stopped before the end: what was measured until then, and no verdict");
    }
    return document_of(bench);
  });
  return is_partial ? interrupted_code() : code;
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
