#include "weft/cli/judge/check_run.h"

#include <algorithm>
#include <filesystem>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/cli/memory/memory_limit.h"
#include "weft/cli/memory/memory_search.h"
#include "weft/cli/run/machine_limit.h"
#include "weft/cli/run/run_room.h"
#include "weft/cli/run/start_model.h"
#include "weft/cli/run/start_shapes.h"
#include "weft/cli/terminal/progress.h"
#include "weft/derive/derived.h"
#include "weft/train/places.h"
#include "weft/train/preparation.h"

namespace weft::cli {
namespace {

config::Finding file_finding(const std::string& message) {
  return {.id = "W71", .key = {}, .from = nullptr, .to = nullptr, .message = message, .fix = {}};
}

// Adds warnings and missing parts of the start folder.
void take_start(const StartShapes& start, rules::Verdict& verdict) {
  for (const std::string& remark : start.remarks) verdict.warnings.push_back(file_finding(remark));
  if (!verdict.legal()) return;
  for (rules::Missing& part : verdict.missing) {
    const bool is_decided = !start.missing.empty() && is_decided_by_folder(part.keys.front());
    if (is_decided) part.fix = "the folder decides it: weft plan and weft memory take it as it is";
  }
  verdict.missing.insert(verdict.missing.end(), start.missing.begin(), start.missing.end());
}

// Checks the files that the run reads and writes, as `weft train` would. Skips weights that are not
// read anyway.
void look_at_files(const StartShapes& start, rules::Verdict& verdict, base::Overwrite overwrite) {
  config::Config config = verdict.config;
  if (!start.missing.empty()) config.checkpoint.pretrained_checkpoint.clear();
  const std::string load = config.checkpoint.load;
  std::error_code ignored;
  if (!load.empty() && !std::filesystem::exists(load, ignored)) {
    config.checkpoint.load.clear();
    // Such a run starts from scratch if the folder is empty.
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

// Report with the errors of words and files that cannot be read.
CheckReport unreadable(const words::Resolution& run, const base::ConfigError& error) {
  CheckReport report;
  report.readable = Readable::No;
  report.verdict.errors = unread(run.complaints);
  for (config::Finding& each : unread(error.complaints())) {
    report.verdict.errors.push_back(std::move(each));
  }
  return report;
}

// Drops the errors of keys whose value could not be read: they have another value than asked.
void leave_refused_keys(const words::Resolution& run, rules::Verdict& verdict) {
  std::erase_if(verdict.errors, [&](const config::Finding& error) {
    return std::ranges::find(run.refused_keys, error.key) != run.refused_keys.end();
  });
}

// True if the memory need is known. A run of many layers on processor cores is not counted if it
// exceeds the room without that.
bool look_at_memory(const config::Config& asked,
                    const measure::MemoryRoom& room,
                    MemoryWish wish,
                    CheckReport& report) {
  const config::Config& config = report.verdict.config;
  ProgressLine line;
  if (wish == MemoryWish::Predict) {
    report.memory = report_fit(asked, room, shown_on(line));
    report.limits = memory_limits(*report.memory, config);
    return report.memory->forecast.is_predicted();
  }
  if (is_ample(config, room)) return true;
  const bool is_short = is_countable(config) && is_quick_to_count(asked);
  if (const auto limit = is_short ? std::nullopt : least_limit(config, room)) {
    report.limits = {*limit};
    return true;
  }
  if (!is_countable(config)) return false;
  const auto quick = report_quickly(asked, config, room, shown_on(line));
  if (!quick) return true;
  report.limits = memory_limits(*quick, config);
  report.fits_narrowly =
      report.limits.empty() && quick->peaks_counted == Counted::ByThePlanner && is_narrow(*quick);
  return quick->forecast.is_predicted();
}

// Judges memory without unbuilt parts; the report names them.
void judge_memory(const config::Config& asked, MemoryWish wish, CheckReport& report) {
  // A run for GPUs without a name has one error, which asks for the name.
  const auto too_large = [](const rules::Missing& missing) {
    return missing.message.starts_with("no GPU is named");
  };
  if (std::ranges::any_of(report.verdict.missing, too_large)) return;
  const measure::MemoryRoom room = judged_room(report.verdict.config);
  const bool is_known = look_at_memory(asked, room, wish, report);
  if (!room.device || !is_known || !report.limits.empty()) return;
  const bool is_whole = std::ranges::all_of(report.verdict.missing, [](const auto& missing) {
    return missing.part == rules::kNoGpu;
  });
  report.fits = room.device->name + (is_whole ? "" : " without what is missing");
}

// Reads, needs and advice of a legal run. A key whose value could not be read changes all but the
// files.
void judge_rest(const words::Resolution& run,
                const StartShapes& start,
                const CheckRequest& asked,
                CheckReport& report) {
  if (report.verdict.legal()) look_at_files(start, report.verdict, asked.overwrite);
  if (!report.verdict.legal() || !run.refused_keys.empty()) return;
  const config::Config& config = report.verdict.config;
  judge_memory(run.config, asked.memory, report);
  report.advice = rules::advise(config);
  report.modes = rules::overlap_modes(report.verdict);
  report.derived = derive::derived_run(config);
  if (asked.schedule == ScheduleWish::Verify) report.schedule = plan::check_schedule(config);
}

}  // namespace

CheckReport check_run(const CheckRequest& asked) {
  words::Resolution run;
  StartShapes start;
  try {
    run = resolve_for_check(asked.run);
    start = start_shapes(run);
    run.config = start.config;
    run.automatic.insert(run.automatic.end(), start.automatic.begin(), start.automatic.end());
  } catch (const base::ConfigError& error) {
    return unreadable(run, error);
  }
  CheckReport report;
  report.recipe = name_of_run(run, run.config);
  report.wish = asked.schedule;
  report.verdict = judged(run);
  leave_refused_keys(run, report.verdict);
  take_start(start, report.verdict);
  judge_rest(run, start, asked, report);
  // Words that cannot be read stand beside what is wrong with the others.
  std::vector<config::Finding> errors = unread(run.complaints);
  report.verdict.errors.insert(report.verdict.errors.begin(), errors.begin(), errors.end());
  return report;
}

}  // namespace weft::cli
