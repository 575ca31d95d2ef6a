// weft tune: measures changes on this machine and keeps those that pay.
#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/perf/perf_folder.h"
#include "weft/cli/perf/tune_report.h"
#include "weft/cli/perf/tune_request.h"
#include "weft/cli/plan/program_option.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/start_model.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/number_range.h"
#include "weft/cli/terminal/progress.h"
#include "weft/config/dump.h"
#include "weft/train/log/run_folder.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;

struct TuneOptions {
  RunArguments run;
  std::vector<std::string> vary;
  std::int64_t steps = 12;
  int repeats = 2, trials = 32;
  std::optional<std::string> out;
  std::string program;
};

void write_files(const TuneReport& report, const fs::path& folder) {
  base::write_whole(report.recipe, config::to_yaml(report.tuning.config));
  base::write_whole(folder / "costs.json", exec::sim::print(report.tuning.costs));
  base::write_whole(folder / "result.md", to_markdown(report));
  base::write_whole(folder / "result.json", to_json(report).dump(1) + "\n");
}

int run_tune(const TuneOptions& options) {
  if (under_launcher()) {
    throw base::ConfigError("weft tune times ranks of one process: run it without mpirun");
  }
  require_own_program(options.program);
  const words::Resolution run = resolve(options.run);
  refuse_foreign_launcher(run);
  print_findings(run);
  require_result_folder(options.out, std::nullopt);
  measure::TuneRequest request{.config = with_start(run, run.config),
                               .moves = asked_moves(options.vary),
                               .steps = options.steps,
                               .repeats = options.repeats,
                               .most_trials = options.trials};
  require_tunable(request.config);
  request.folder = options.out ? fs::path(*options.out)
                               : train::make_fresh_folder("tune", name_of_run(run, run.config));
  train::make_writable_folder(request.folder, "--out");
  request.stop = &catch_interrupts();
  ProgressLine line;
  request.progress = [&](const std::string& what, std::int64_t step) {
    line.show(text("{} {}", bar(double(step) / double(options.steps), 24), what));
  };
  request.told = [&](const measure::Trial& trial) { line.log(to_line(trial)); };
  const measure::Tuning tuning = measure::tune(request);
  line.clear();
  const TuneReport report{.name = name_of_run(run, run.config),
                          .request = request,
                          .tuning = tuning,
                          .recipe = request.folder / "recipe.yaml"};
  write_files(report, request.folder);
  switch (options.run.format) {
    case Format::Text:
      print_text(to_text(report));
      break;
    case Format::Json:
      print_json(to_json(report));
      break;
  }
  return tuning.is_interrupted() ? interrupted_code() : kGood;
}

}  // namespace

void add_tune(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "tune",
      "measure a run here, change one setting at a time, keep what is faster; writes the recipe");
  auto options = std::make_shared<TuneOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft tune overlap_bench fabric.intra_node_gb_per_second=0.2");
  add_vary(*command, options->vary);
  add_program_option(*command, options->program)
      ->description("whose program is measured: weft, which it is anyway");
  within(6, 10000, command->add_option("--steps", options->steps, "of each run; the first warm up"))
      ->capture_default_str();
  within(1, 100, command->add_option("--repeats", options->repeats, "runs of each of two settings"))
      ->capture_default_str();
  within(1, 1000, command->add_option("--trials", options->trials, "settings to measure at most"))
      ->capture_default_str();
  command->add_option("--out",
                      options->out,
                      "folder for the results, without any yet; else tune/<recipe>-<time>");
  on_chosen(*command, chosen, std::move(options), run_tune);
}

}  // namespace weft::cli
