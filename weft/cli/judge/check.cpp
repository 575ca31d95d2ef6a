// weft check: judges a run without running it.
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/command.h"
#include "weft/cli/judge/check_report.h"
#include "weft/cli/judge/check_run.h"
#include "weft/cli/output.h"
#include "weft/derive/derived.h"
#include "weft/rules/rule_pages.h"

namespace weft::cli {
namespace {

struct CheckOptions {
  CheckRequest asked;
  std::string explain;
  bool markdown = false;
  Detail detail = Detail::Plain;
};

// Options that print a page exclude a run.
void require_alone(const CheckOptions& options) {
  const bool explains = !options.explain.empty();
  if (!explains && !options.markdown) return;
  const bool looks = !options.asked.run.words.empty() ||
                     options.asked.schedule != ScheduleWish::None ||
                     options.asked.memory == MemoryWish::Predict;
  if (!looks && !(explains && options.markdown)) return;
  throw base::ConfigError(base::text("{} looks at no run: leave out everything but it and --json",
                                     explains ? "--explain ID" : "--markdown"));
}

int run_check(const CheckOptions& options) {
  require_alone(options);
  const bool json = options.asked.run.format == Format::Json;
  if (options.markdown) {
    json ? print_json({{"markdown", rules::markdown_rules()}})
         : print_text(rules::markdown_rules());
    return kGood;
  }
  if (!options.explain.empty()) {
    json ? print_json(rules::explain_json(options.explain))
         : print_text(rules::explain(options.explain));
    return kGood;
  }
  const CheckReport report = check_run(options.asked);
  switch (options.asked.run.format) {
    case Format::Text:
      print_text(to_text(report, options.detail));
      break;
    case Format::Json:
      print_json(to_json(report));
      break;
  }
  if (!report.verdict.legal()) return kWrongInput;
  const bool fits = report.limits.empty() || !derive::is_on_gpu(report.verdict.config);
  return fits && !(report.schedule && !report.schedule->valid()) ? kGood : kFailed;
}

}  // namespace

void add_check(CLI::App& program, Action& chosen) {
  CLI::App* command = program.add_subcommand(
      "check",
      "judge a run without running it: what is wrong, set automatically, missing or unwise");
  auto options = std::make_shared<CheckOptions>();
  add_run_arguments(*command,
                    options->asked.run,
                    "weft check qwen3_30b_a3b --world-size 1024 "
                    "model.pipeline_model_parallel_size=4 "
                    "model.virtual_pipeline_model_parallel_size=2 --schedule");
  command->footer(
      command->get_footer() +
      "\nWhere hardware.* names a GPU, also whether the run fits it, and what would make it fit: a "
      "short step is counted without arithmetic, a long one estimated by the planner within 2 %. "
      "--memory counts every pipeline rank to the byte.\n"
      "Exit code: 0 where the run is legal, whether or not this build or this machine runs it; 1 "
      "where it does not fit the GPU that hardware.* names, as of weft memory; 2 where it is not "
      "legal.");
  add_overwrite(*command,
                options->asked.overwrite,
                "judge as `weft train --overwrite` would run it");
  command->add_flag_callback(
      "--schedule",
      [options = options.get()] { options->asked.schedule = ScheduleWish::Verify; },
      "also plan and verify the schedule of every pipeline rank");
  command->add_flag_callback(
      "--memory",
      [options = options.get()] { options->asked.memory = MemoryWish::Predict; },
      "also predict the memory of every pipeline rank, by a step without arithmetic");
  command->add_flag_callback(
      "--verbose",
      [options = options.get()] { options->detail = Detail::Verbose; },
      "also list what was set automatically, and what overlaps");
  command
      ->add_option("--explain",
                   options->explain,
                   "tell the story of a rule (C14) or advice (A1), or what a preset of "
                   "comm_overlap.tp_comm_overlap_cfg holds")
      ->check([](const std::string& id) { return id.empty() ? "a rule's name is wanted" : ""; })
      ->type_name("ID");
  command->add_flag("--markdown", options->markdown, "print every rule and advice: docs/rules.md");
  on_chosen(*command, chosen, std::move(options), run_check);
}

}  // namespace weft::cli
