// weft check: judges a run without running it.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/check_report.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/config/missing.h"
#include "weft/config/rules/reference.h"

namespace weft::cli {
namespace {

enum class Schedules { Skipped, Verified };

struct CheckOptions {
  RunArguments run;
  Schedules schedules = Schedules::Skipped;
  std::string explain;
  bool markdown = false;
};

// What cannot be read is an error like any other: the report has it, with the rest left out.
CheckReport unreadable(const base::ConfigError& error) {
  CheckReport report;
  for (const std::string& complaint : error.complaints()) {
    report.verdict.errors.push_back(
        {.id = "W31", .key = {}, .from = nullptr, .to = nullptr, .message = complaint, .fix = {}});
  }
  return report;
}

CheckReport check(const CheckOptions& options) {
  config::Resolution run;
  try {
    run = resolve(options.run);
  } catch (const base::ConfigError& error) {
    return unreadable(error);
  }
  CheckReport report{.recipe = run.recipe,
                     .verdict = judged(run),
                     .advice = {},
                     .modes = {},
                     .derived = {},
                     .schedule = {}};
  if (!report.verdict.legal()) return report;
  const config::Config& config = report.verdict.config;
  report.advice = config::advise(config);
  report.modes = config::overlap_modes(report.verdict);
  report.derived = config::derived_run(config);
  if (options.schedules == Schedules::Verified) report.schedule = check_schedule(config);
  return report;
}

int run_check(const CheckOptions& options) {
  if (options.markdown) {
    print_text(config::markdown_rules());
    return kGood;
  }
  if (!options.explain.empty()) {
    print_text(config::explain(options.explain));
    return kGood;
  }
  const CheckReport report = check(options);
  switch (options.run.format) {
    case Format::Text:
      print_text(to_text(report));
      break;
    case Format::Json:
      print_json(to_json(report));
      break;
  }
  if (!report.verdict.legal()) return kWrongInput;
  return report.schedule && !report.schedule->valid() ? kFailed : kGood;
}

}  // namespace

void add_check(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "check",
      "judge a run without running it: what is wrong, set automatically, missing or unwise");
  auto options = std::make_shared<CheckOptions>();
  add_run_arguments(*command,
                    options->run,
                    "weft check qwen3_30b_a3b --world-size 1024 "
                    "model.pipeline_model_parallel_size=4 --schedule");
  command->add_flag_callback(
      "--schedule",
      [options = options.get()] { options->schedules = Schedules::Verified; },
      "also plan and verify the schedule of every pipeline rank");
  command
      ->add_option("--explain", options->explain, "tell the story of a rule (C14) or advice (A1)")
      ->type_name("ID");
  command->add_flag("--markdown", options->markdown, "print every rule and advice: docs/rules.md");
  on_chosen(*command, chosen, std::move(options), run_check);
}

}  // namespace weft::cli
