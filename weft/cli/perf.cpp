// weft perf: the harness. Freeze everything, vary one knob, compare steady-state steps.
#include "weft/base/error.h"
#include "weft/checkpoint/huggingface.h"
#include "weft/cli/command.h"
#include "weft/cli/launcher.h"
#include "weft/cli/perf_session.h"
#include "weft/train/weights.h"

namespace weft::cli {
namespace {

constexpr const char* kDefaultRecipe = "tiny";

// The harness's own options, apart from the words that make the config. Of one that is there twice
// the later counts, as among overrides.
struct PerfOptions {
  RunArguments run;
  std::vector<std::string> vary;
  Sweep sweep = Sweep::OneKnob;
  TwinUse twin = TwinUse::WhenNeeded;
  PerfMode mode = PerfMode::Measure;
  std::optional<std::int64_t> steps;
  train::WindowOptions window;
  Thresholds thresholds;
  std::optional<std::string> against, out;
};

// The model of a folder to start from, as `weft train` takes it.
config::Config with_start(const PerfOptions& options, const config::Config& config) {
  const std::string& start = config.checkpoint.pretrained_checkpoint;
  if (start.empty()) return config;
  refuse_keys(options.run.words,
              train::kFolderModelKeys,
              base::text("the model comes from checkpoint.pretrained_checkpoint='{}'", start));
  return train::with_model_of(config, checkpoint::HuggingFaceModel(start));
}

int run_perf(const PerfOptions& options) {
  if (under_launcher()) {
    throw base::ConfigError("weft perf times ranks of one process: run it without mpirun");
  }
  const Run run = resolve_or(options.run, kDefaultRecipe);
  std::vector<Knob> knobs;
  for (const std::string& word : options.vary) knobs.push_back(parse_knob(word));
  return run_session({.name = run.recipe,
                      .config = with_start(options, run.config),
                      .knobs = std::move(knobs),
                      .sweep = options.sweep,
                      .twin = options.twin,
                      .steps = options.steps,
                      .window = options.window,
                      .against = options.against,
                      .thresholds = options.thresholds,
                      .out = options.out,
                      .mode = options.mode,
                      .format = options.run.format});
}

void add_window(CLI::App& command, PerfOptions& options) {
  command
      .add_option("--eval_time_start_step",
                  options.window.start,
                  "first step that is timed, counted from 0")
      ->take_last();
  command
      .add_option("--eval_time_end_step",
                  options.window.end,
                  "the step after the last that is timed")
      ->take_last();
  command
      .add_option("--skip_first_percent_time",
                  options.window.skip_first,
                  "share of the steps left out where no first step is given")
      ->take_last()
      ->capture_default_str();
}

void add_comparison(CLI::App& command, PerfOptions& options) {
  command
      .add_option("--against",
                  options.against,
                  "result.json of an earlier run to compare with; exit code 1 on a regression")
      ->take_last();
  command
      .add_option("--timing_threshold",
                  options.thresholds.time,
                  "share by which a step may be slower than the stored one")
      ->check(CLI::Range(0.0, 1000.0))
      ->take_last()
      ->capture_default_str();
  command
      .add_option("--memory_threshold",
                  options.thresholds.memory,
                  "share by which the peak may be above the stored one")
      ->check(CLI::Range(0.0, 1000.0))
      ->take_last()
      ->capture_default_str();
}

void add_sweep(CLI::App& command, PerfOptions& options) {
  command
      .add_option("--vary",
                  options.vary,
                  "a key and its values, a.b=x,y,z: one run each, everything else frozen")
      ->allow_extra_args(false);
  command.add_flag_callback(
      "--grid",
      [&options] { options.sweep = Sweep::Grid; },
      "allow several --vary: every combination is run");
  command.add_flag_callback(
      "--twin",
      [&options] { options.twin = TwinUse::Always; },
      "run a scaled-down twin even where the model runs here");
}

}  // namespace

void add_perf(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "perf",
      "vary one knob, compare steady-state steps, keep the results; without a recipe, tiny");
  auto options = std::make_shared<PerfOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft perf tiny --max_steps 10 --vary "
                    "comm_overlap.overlap_moe_expert_parallel_comm=false,true");
  add_sweep(*command, *options);
  command
      ->add_option("--max_steps",
                   options->steps,
                   "steps of each run; else the recipe's, at most 50")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000000}))
      ->take_last();
  add_window(*command, *options);
  add_comparison(*command, *options);
  command->add_option("--out", options->out, "folder for the results; else perf/<recipe>-<time>")
      ->take_last();
  command->add_flag_callback(
      "-d,--dryrun",
      [opened = options.get()] { opened->mode = PerfMode::DryRun; },
      "print the resolved config and what would run; run nothing");
  on_chosen(*command, chosen, std::move(options), run_perf);
}

}  // namespace weft::cli
