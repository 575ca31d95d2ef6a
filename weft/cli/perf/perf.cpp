// weft perf: the harness. Freezes everything, varies one knob, compares steady-state steps.
#include "weft/base/error.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/perf/perf_flags.h"
#include "weft/cli/perf/perf_folder.h"
#include "weft/cli/perf/perf_session.h"
#include "weft/cli/run/launcher.h"
#include "weft/cli/run/start_model.h"

namespace weft::cli {
namespace {

// Weft's own options; the harness's flags are words (words/harness/harness_flags.h).
struct PerfOptions {
  RunArguments run;
  std::vector<std::string> vary;
  plan::Sweep sweep = plan::Sweep::OneKnob;
  TwinUse twin = TwinUse::WhenNeeded;
  std::optional<std::string> against, out;
  bool list_flags = false;
  Opening opening = Opening::Short;
  base::Overwrite overwrite = base::Overwrite::No;  // applies to the file of --save_config_filepath
};

// Warns of loss flags of the harness, which have no effect: the user compares losses with a stored
// run.
void warn_of_loss_flags(const words::HarnessSelection& chosen) {
  const words::HarnessSelection unset;
  const auto warn = [](bool is_set, const char* flag) {
    if (is_set) print_warning(base::text("{} has no effect: losses are not compared", flag));
  };
  warn(chosen.correlation_threshold != unset.correlation_threshold, "--correlation_threshold");
  warn(chosen.skip_first_percent_loss != unset.skip_first_percent_loss,
       "--skip_first_percent_loss");
  warn(chosen.high_loss_tolerance != unset.high_loss_tolerance, "--high_loss_tolerance");
  warn(chosen.medium_loss_tolerance != unset.medium_loss_tolerance, "--medium_loss_tolerance");
  warn(chosen.low_loss_tolerance != unset.low_loss_tolerance, "--low_loss_tolerance");
  warn(chosen.final_loss_tolerance != unset.final_loss_tolerance, "--final_loss_tolerance");
  warn(chosen.max_outlier_ratio != unset.max_outlier_ratio, "--max_outlier_ratio");
  warn(chosen.outlier_threshold != unset.outlier_threshold, "--outlier_threshold");
  warn(chosen.is_long_convergence_run, "--is_long_convergence_run");
}

// Value given in one of two spellings; an error for both.
std::optional<std::string> one_of(const std::optional<std::string>& own,
                                  const std::string& harness,
                                  const char* names) {
  if (own && !harness.empty()) throw base::ConfigError(base::text("{}: give one of them", names));
  if (own) return own;
  return harness.empty() ? std::nullopt : std::optional(harness);
}

int list_variants(const words::HarnessSelection& chosen) {
  print_text(
      base::text("weft recipes {} lists the layouts; -ng, -g, -c and --config_variant choose "
                 "one\n",
                 chosen.recipe));
  return kGood;
}

int run_perf(const PerfOptions& options) {
  if (options.list_flags) {
    options.run.format == Format::Json ? print_json(flags_json()) : print_text(flags_text());
    return kGood;
  }
  if (under_launcher()) {
    throw base::ConfigError("weft perf times ranks of one process: run it without mpirun");
  }
  const words::Resolution run = resolve_for_perf(options.run);
  refuse_foreign_launcher(run);
  const words::HarnessSelection& chosen = run.harness;
  if (chosen.list_config_variants) return list_variants(chosen);
  const auto against =
      one_of(options.against, chosen.golden_values_path, "--against and --golden_values_path");
  const auto out = one_of(options.out, chosen.log_dir, "--out and --log_dir");
  require_result_folder(out, against);
  warn_of_loss_flags(chosen);
  print_findings(run);
  std::vector<plan::Knob> knobs;
  for (const std::string& word : options.vary) knobs.push_back(plan::parse_knob(word));
  return run_session(
      {.name = name_of_run(run, run.config),
       .config = with_start(run, run.config),
       .knobs = std::move(knobs),
       .sweep = options.sweep,
       .twin = options.twin,
       .steps = chosen.max_steps,
       .window = {.start = chosen.eval_time_start_step,
                  .end = chosen.eval_time_end_step,
                  .skip_first = chosen.skip_first_percent_time},
       .against = against,
       .thresholds = {.time = chosen.timing_threshold, .memory = chosen.memory_threshold},
       .out = out,
       .save_config = chosen.save_config_filepath.empty()
                          ? std::nullopt
                          : std::optional<std::filesystem::path>(chosen.save_config_filepath),
       .overwrite = options.overwrite,
       .mode = chosen.dryrun ? PerfMode::DryRun : PerfMode::Measure,
       .opening = options.opening,
       .format = options.run.format});
}

void add_sweep(CLI::App& command, PerfOptions& options) {
  command
      .add_option("--vary",
                  options.vary,
                  "a key and its values, a.b=x,y,z: one run each, everything else frozen")
      ->allow_extra_args(false);
  command.add_flag_callback(
      "--grid",
      [&options] { options.sweep = plan::Sweep::Grid; },
      "allow several --vary: every combination is run");
  command.add_flag_callback(
      "--twin",
      [&options] { options.twin = TwinUse::Always; },
      "run a scaled-down twin even where the model runs here");
}

}  // namespace

void add_perf(CLI::App& program, Action& chosen) {
  CLI::App* command =
      program.add_subcommand("perf", "vary one knob, compare steady-state steps, keep the results");
  auto options = std::make_shared<PerfOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft perf tiny --max_steps 10 --vary "
                    "comm_overlap.overlap_moe_expert_parallel_comm=false,true");
  add_sweep(*command, *options);
  add_overwrite(*command, options->overwrite, "replace the file of --save_config_filepath");
  command->add_option(
      "--against",
      options->against,
      "result.json of an earlier run to compare with; exit code 1 on a regression, 0 "
      "where it is within the noise or not like with like");
  command->add_option("--out",
                      options->out,
                      "folder for the results, without any yet; else perf/<recipe>-<time>");
  command->add_flag("--flags",
                    options->list_flags,
                    "list the flags of Megatron Bridge's harness and what each does here");
  command->add_flag_callback(
      "--verbose",
      [options = options.get()] { options->opening = Opening::Full; },
      "say at the start also what was set automatically, and what does not overlap and why");
  command->footer(
      command->get_footer() +
      "\nThe flags of Megatron Bridge's harness are words too. Those that say how it measures:\n" +
      measuring_flags_text() + "All of them (-m, -mr, -g, -ng, ...): weft perf --flags");
  on_chosen(*command, chosen, std::move(options), run_perf);
}

}  // namespace weft::cli
