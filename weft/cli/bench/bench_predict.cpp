// weft bench predict: accuracy of predicted step times.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/bench/benches.h"
#include "weft/cli/bench/predict_cases.h"
#include "weft/cli/bench/predict_report.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/cli/run/temporary_folder.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/measure/runs/rounds.h"

namespace weft::cli {
namespace {

using base::text;

struct PredictOptions {
  RunArguments run{.default_recipe = "overlap_bench"};
  PredictSet set = PredictSet::Layouts;
  std::int64_t steps = 8;
  int rounds = 3;
  std::vector<std::string> only;
};

// Replaces the name of a set by its number; returns an error.
std::string number_of_set(std::string& name) {
  for (const PredictSet set : {PredictSet::Layouts, PredictSet::Models}) {
    if (name != word(set)) continue;
    name = std::to_string(static_cast<int>(set));
    return "";
  }
  return text("'{}' is no set of runs: layouts or models", name);
}

bool is_asked_for(const measure::PredictCase& each, const std::vector<std::string>& only) {
  return only.empty() || std::ranges::any_of(only, [&](const std::string& part) {
           return each.name.find(part) != std::string::npos;
         });
}

std::vector<measure::PredictCase> chosen_cases(const PredictRuns& runs,
                                               const std::vector<std::string>& only) {
  std::vector<measure::PredictCase> cases;
  for (const measure::PredictCase& each : runs.cases) {
    if (is_asked_for(each, only)) cases.push_back(each);
  }
  if (!cases.empty()) return cases;
  std::vector<std::string> names;
  for (const measure::PredictCase& each : runs.cases) names.push_back(each.name);
  throw base::ConfigError(
      text("--only names no run of this set, which are: {}", fmt::join(names, "; ")));
}

int run_predict(const PredictOptions& options) {
  if (under_launcher()) {
    throw base::ConfigError("bench predict times ranks of one process: run it without mpirun");
  }
  const PredictRuns runs = predict_runs(options.run, options.set);
  const TemporaryFolder folder;
  const std::vector<measure::PredictCase> cases = chosen_cases(runs, options.only);
  for (const measure::PredictCase& each : cases) {
    if (const auto limit = machine_limit(each.config)) {
      throw base::ConfigError(text("{}: {}: {}", each.name, limit->message, limit->fix));
    }
  }
  bool is_partial = false;
  const int code = run_bench(options.run.format, [&](ProgressLine& line) {
    const measure::PredictBench bench = measure::bench_predict(
        {.calibrating = runs.calibrating,
         .cases = cases,
         .steps = options.steps,
         .rounds = options.rounds,
         .folder = folder.path(),
         .stop = &catch_interrupts(),
         .progress = [&](const std::string& what, int run, int of) {
           line.show(text("{} run {}/{}: {}", bar(double(run) / of, 24), run, of, what));
         }});
    if (bench.predictions.empty()) throw measure::Stopped{};
    is_partial = bench.interrupted;
    if (is_partial) {
      line.log(text("stopped before the end: {} of {} runs were measured",
                    bench.predictions.size(),
                    cases.size()));
    }
    return document_of(bench, options.set);
  });
  return is_partial ? interrupted_code() : code;
}

}  // namespace

void add_bench_predict(CLI::App& bench, Action& chosen) {
  CLI::App* predict = bench.add_subcommand(
      "predict",
      "calibrate by one run, predict the steps of many others, then measure them; without a "
      "recipe, layouts of overlap_bench");
  auto options = std::make_shared<PredictOptions>();
  add_run_arguments(*predict, options->run, "weft bench predict --only=EP2 --rounds=2");
  predict
      ->add_option("--set",
                   options->set,
                   "layouts: ranks that are threads, over several links; models: rank 0 of eight "
                   "on a GPU, models of several shapes")
      ->transform(CLI::Validator(number_of_set, ""))
      ->type_name("layouts|models")
      ->default_str("layouts");
  comma_list(predict->add_option("--only",
                                 options->only,
                                 "runs whose names have one of these words, as in EP2,CP2"));
  within(4,
         10000,
         predict->add_option("--steps", options->steps, "of each run; the first half warm up"))
      ->capture_default_str();
  within(1, 1000, predict->add_option("--rounds", options->rounds, "runs of each, in turn"))
      ->capture_default_str();
  on_chosen(*predict, chosen, std::move(options), run_predict);
}

}  // namespace weft::cli
