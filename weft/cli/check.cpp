// weft check: judges a run without running it.
#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/arguments.h"
#include "weft/cli/check_report.h"
#include "weft/cli/command.h"
#include "weft/cli/machine_limit.h"
#include "weft/cli/memory_limit.h"
#include "weft/cli/memory_search.h"
#include "weft/cli/output.h"
#include "weft/cli/progress.h"
#include "weft/cli/run_room.h"
#include "weft/cli/start_model.h"
#include "weft/cli/start_shapes.h"
#include "weft/derive/derived.h"
#include "weft/rules/rule_pages.h"
#include "weft/train/places.h"
#include "weft/train/preparation.h"

namespace weft::cli {
namespace {

struct CheckOptions {
  RunArguments run;
  ScheduleWish wish = ScheduleWish::None;
  MemoryWish memory = MemoryWish::None;
  std::string explain;
  bool markdown = false;
  base::Overwrite overwrite = base::Overwrite::No;
  Detail detail = Detail::Plain;
};

config::Finding file_finding(const std::string& message) {
  return {.id = "W71", .key = {}, .from = nullptr, .to = nullptr, .message = message, .fix = {}};
}

// What the folder that the run starts from leaves open.
void take_start(const StartShapes& start, rules::Verdict& verdict) {
  for (const std::string& remark : start.remarks) verdict.warnings.push_back(file_finding(remark));
  if (!verdict.legal()) return;
  for (rules::Missing& part : verdict.missing) {
    const bool is_decided = !start.missing.empty() && is_decided_by_folder(part.keys.front());
    if (is_decided) part.fix = "the folder decides it: weft plan and weft memory take it as it is";
  }
  verdict.missing.insert(verdict.missing.end(), start.missing.begin(), start.missing.end());
}

// What the run reads and writes, as `weft train` would find it. Weights that are not read anyway
// are not looked at.
void look_at_files(const StartShapes& start, rules::Verdict& verdict, base::Overwrite overwrite) {
  config::Config config = verdict.config;
  if (!start.missing.empty()) config.checkpoint.pretrained_checkpoint.clear();
  const std::string load = config.checkpoint.load;
  std::error_code ignored;
  if (!load.empty() && !std::filesystem::exists(load, ignored)) {
    config.checkpoint.load.clear();
    // Such a run starts anew where it finds nothing.
    if (load != config.checkpoint.save) {
      verdict.warnings.push_back(file_finding(
          base::text("checkpoint.load='{}' is not on this machine: needed where the run starts",
                     config::shown(load))));
    }
  }
  try {
    const train::Preparation ready = train::prepare(config);
    for (const std::string& complaint : train::place_complaints(config, ready.resumed, overwrite)) {
      verdict.warnings.push_back(file_finding(complaint));
    }
  } catch (const base::ConfigError& error) {
    for (const std::string& complaint : error.complaints()) {
      verdict.errors.push_back(file_finding(complaint));
    }
  } catch (const base::SystemError& error) {
    verdict.warnings.push_back(
        file_finding(base::text("{}: not looked at, and needed where it runs", error.what())));
  }
}

std::vector<config::Finding> unread(const std::vector<std::string>& complaints) {
  std::vector<config::Finding> errors;
  for (const std::string& complaint : complaints) {
    errors.push_back(
        {.id = "W31", .key = {}, .from = nullptr, .to = nullptr, .message = complaint, .fix = {}});
  }
  return errors;
}

// What cannot be read is an error like any other: the report has it, with the rest left out.
CheckReport unreadable(const base::ConfigError& error) {
  CheckReport report;
  report.readable = Readable::No;
  report.verdict.errors = unread(error.complaints());
  return report;
}

// Words that cannot be read stand beside what is wrong with the others.
CheckReport faulty(const words::Resolution& run) {
  CheckReport report;
  report.recipe = run.recipe;
  report.verdict = judged(run);
  report.verdict.errors = unread(run.complaints);
  for (config::Finding& error : errors_beside_complaints(run)) {
    report.verdict.errors.push_back(std::move(error));
  }
  return report;
}

// A run of many layers on processor cores is not counted, where it is too large without that.
void look_at_memory(const config::Config& asked,
                    const measure::MemoryRoom& room,
                    MemoryWish wish,
                    CheckReport& report) {
  const config::Config& config = report.verdict.config;
  ProgressLine line;
  if (wish == MemoryWish::Predict) {
    report.memory = report_fit(asked, room, shown_on(line));
    report.limits = memory_limits(*report.memory, config);
    return;
  }
  if (is_ample(config, room)) return;
  const bool is_short = is_countable(config) && is_quick_to_count(asked);
  if (const auto limit = is_short ? std::nullopt : least_limit(config, room)) {
    report.limits = {*limit};
  } else if (is_countable(config)) {
    const auto quick = report_quickly(asked, config, room, shown_on(line));
    if (!quick) return;
    report.limits = memory_limits(*quick, config);
    report.fits_narrowly =
        report.limits.empty() && quick->peaks_counted == Counted::ByThePlanner && is_narrow(*quick);
  }
}

// Parts that are not built are not counted; which they are stands in the report.
void judge_memory(const config::Config& asked, MemoryWish wish, CheckReport& report) {
  // A run for GPUs that names none has one answer, which is to name them.
  const auto too_large = [](const rules::Missing& missing) {
    return missing.message.starts_with("no GPU is named");
  };
  if (std::ranges::any_of(report.verdict.missing, too_large)) return;
  const measure::MemoryRoom room = judged_room(report.verdict.config);
  look_at_memory(asked, room, wish, report);
  const bool is_counted = wish == MemoryWish::Predict ? report.memory->forecast.is_predicted()
                                                      : is_countable(report.verdict.config);
  if (!room.device || !is_counted || !report.limits.empty()) return;
  const bool is_whole = std::ranges::all_of(report.verdict.missing, [](const auto& missing) {
    return missing.part == rules::kNoGpu;
  });
  report.fits = room.device->name + (is_whole ? "" : " without what is missing");
}

CheckReport check(const CheckOptions& options) {
  words::Resolution run;
  StartShapes start;
  try {
    run = resolve_for_check(options.run);
    if (!run.complaints.empty()) return faulty(run);
    start = start_shapes(run);
    run.config = start.config;
    run.automatic.insert(run.automatic.end(), start.automatic.begin(), start.automatic.end());
  } catch (const base::ConfigError& error) {
    return unreadable(error);
  }
  CheckReport report;
  report.recipe = name_of_run(run, run.config);
  report.wish = options.wish;
  report.verdict = judged(run);
  take_start(start, report.verdict);
  if (report.verdict.legal()) look_at_files(start, report.verdict, options.overwrite);
  if (!report.verdict.legal()) return report;
  const config::Config& config = report.verdict.config;
  judge_memory(run.config, options.memory, report);
  report.advice = rules::advise(config);
  report.modes = rules::overlap_modes(report.verdict);
  report.derived = derive::derived_run(config);
  if (options.wish == ScheduleWish::Verify) report.schedule = plan::check_schedule(config);
  return report;
}

// What prints a page looks at no run.
void require_alone(const CheckOptions& options) {
  const bool explains = !options.explain.empty();
  if (!explains && !options.markdown) return;
  const bool looks = !options.run.words.empty() || options.wish != ScheduleWish::None ||
                     options.memory == MemoryWish::Predict;
  if (!looks && !(explains && options.markdown)) return;
  throw base::ConfigError(base::text("{} looks at no run: leave out everything but it and --json",
                                     explains ? "--explain ID" : "--markdown"));
}

int run_check(const CheckOptions& options) {
  require_alone(options);
  const bool json = options.run.format == Format::Json;
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
  const CheckReport report = check(options);
  switch (options.run.format) {
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
                    options->run,
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
  add_overwrite(*command, options->overwrite, "judge as `weft train --overwrite` would run it");
  command->add_flag_callback(
      "--schedule",
      [options = options.get()] { options->wish = ScheduleWish::Verify; },
      "also plan and verify the schedule of every pipeline rank");
  command->add_flag_callback(
      "--memory",
      [options = options.get()] { options->memory = MemoryWish::Predict; },
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
