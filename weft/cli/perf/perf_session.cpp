#include "weft/cli/perf/perf_session.h"

#include <set>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/output.h"
#include "weft/cli/perf/perf_folder.h"
#include "weft/cli/perf/perf_text.h"
#include "weft/cli/plan/layout_text.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/progress.h"
#include "weft/config/dump.h"
#include "weft/derive/derived.h"
#include "weft/train/log/run_folder.h"

namespace weft::cli {
namespace {

namespace fs = std::filesystem;
using base::text;

std::string json_text(const base::Json& json) {
  return json.dump(1, ' ', false, base::Json::error_handler_t::replace) + "\n";
}

// Writes each file completely or not at all, after every run: a stopped session keeps its
// measurements.
void write_results(const PerfReport& report,
                   const fs::path& folder,
                   const std::optional<Comparison>& comparison) {
  base::Json json = to_json(report);
  std::string page = to_markdown(report);
  if (comparison) {
    json["comparison"] = to_json(*comparison);
    page += text("\n## Comparison\n\n```\n{}```\n", to_text(*comparison));
  }
  base::write_whole(folder / "result.json", json_text(json));
  base::write_whole(folder / "result.md", page);
}

void announce(const PerfPlan& plan, const Machine& machine, Opening opening, ProgressLine& line) {
  const Candidate& first = plan.candidates.front();
  if (plan.is_twin()) {
    line.log(
        text("weft: a twin runs instead of the model: {}; {} changed (result.md lists "
             "them): {}, {}, {}, {}",
             plan.twin_reason,
             base::counted(std::ssize(first.changes), "key"),
             base::counted(derive::layout_of(first.config).world, "rank"),
             layout_text(first.config->model),
             base::counted(first.config->model.num_layers, "layer"),
             base::counted(first.config->model.experts(), "expert")));
  }
  if (const std::string crowd = crowding(plan, machine); !crowd.empty()) {
    line.log("warning: " + crowd);
  }
  std::set<std::string> said;
  for (const Candidate& candidate : plan.candidates) {
    for (const config::Finding& warning : candidate.warnings) {
      const std::string words = config::to_text(warning);
      if (said.insert(words).second) line.log("warning: " + words);
    }
    for (const config::Finding& set : candidate.automatic) {
      if (opening == Opening::Short) break;
      const std::string words = set_line(set);
      if (said.insert(words).second) line.log(words);
    }
    // A later run prints only differences from the earlier ones.
    for (const rules::OverlapMode& mode : candidate.overlaps) {
      if (!mode.on && !mode.automatic && opening == Opening::Short) continue;
      const std::string words = rules::to_line(mode);
      if (said.insert(words).second) line.log(text("overlap ({}): {}", candidate.value, words));
    }
  }
}

// Runs the candidates one after another in this process.
class Measurement {
 public:
  Measurement(const PerfSession& session, PerfPlan plan, ProgressLine& line)
      : line_(line),
        folder_(session.out ? *session.out : train::make_fresh_folder(kPerfFolder, session.name)) {
    report_ = {.name = session.name,
               .plan = std::move(plan),
               .machine = this_machine(),
               .window = session.window,
               .runs = {},
               .state = PerfState::Running,
               .failure = {}};
    train::make_writable_folder(folder_, "--out");
    if (!report_.plan.is_twin()) return;
    report_.asked_file = folder_ / "asked.yaml";
    base::write_whole(report_.asked_file, config::to_yaml(report_.plan.candidates.front().asked));
  }

  void run() {
    const std::atomic<bool>& stop = catch_interrupts();
    write_results(report_, folder_, std::nullopt);
    try {
      for (std::size_t i = 0; i < report_.plan.candidates.size() && !stop; ++i) {
        report_.runs.push_back(run_one(i, stop));
        write_results(report_, folder_, std::nullopt);
      }
    } catch (const std::exception& error) {
      report_.state = PerfState::Failed;
      report_.failure = error.what();
      write_results(report_, folder_, std::nullopt);
      throw;
    }
    const bool all = report_.runs.size() == report_.plan.candidates.size();
    report_.state =
        all && !report_.runs.back().interrupted ? PerfState::Complete : PerfState::Interrupted;
  }

  const PerfReport& report() const { return report_; }
  const fs::path& folder() const { return folder_; }

 private:
  measure::PerfRun run_one(std::size_t index, const std::atomic<bool>& stop) {
    const Candidate& candidate = report_.plan.candidates[index];
    return measure::run_perf({.config = candidate.config,
                              .steps = report_.plan.steps,
                              .window = report_.window,
                              .run_dir = folder_ / text("run{}", index + 1),
                              .stop = &stop,
                              .progress = [&](const train::StepRecord& record) {
                                const double share = static_cast<double>(record.iteration) /
                                                     static_cast<double>(report_.plan.steps);
                                line_.show(text("{} run {}/{} ({}) step {}/{}  {:.1f} ms",
                                                bar(share, 24),
                                                index + 1,
                                                report_.plan.candidates.size(),
                                                candidate.value,
                                                record.iteration,
                                                report_.plan.steps,
                                                record.elapsed_ms));
                              }});
  }

  ProgressLine& line_;
  fs::path folder_;
  PerfReport report_;
};

void show(const PerfSession& session,
          const Measurement& measured,
          const std::optional<Comparison>& comparison) {
  switch (session.format) {
    case Format::Text:
      print_text(to_text(measured.report()));
      if (comparison) print_text(to_text(*comparison));
      print_text(text("results   {}\n", (measured.folder() / "result.md").string()));
      break;
    case Format::Json: {
      base::Json json = to_json(measured.report());
      if (comparison) json["comparison"] = to_json(*comparison);
      json["folder"] = measured.folder().string();
      print_json(json);
      break;
    }
  }
}

void show_plan(const PerfPlan& plan, Format format) {
  switch (format) {
    case Format::Text:
      print_text(dry_run_text(plan));
      break;
    case Format::Json:
      print_json(to_json(plan));
      break;
  }
}

}  // namespace

int run_session(const PerfSession& session) {
  const std::int64_t steps =
      session.steps.value_or(std::min(session.config.train.train_iters, kDefaultSteps));
  if (steps < 1) throw base::ConfigError(text("{} steps: use at least 1", steps));
  measure::timing_window(steps, session.window);
  std::optional<StoredResult> stored;
  if (session.against) stored = read_stored(*session.against);
  PerfPlan plan = plan_perf({.config = session.config,
                             .knobs = session.knobs,
                             .sweep = session.sweep,
                             .steps = steps,
                             .twin = session.twin});
  if (stored) require_partner(plan, *stored);
  if (session.save_config) {
    base::require_free(*session.save_config, session.overwrite);
    base::write_whole(*session.save_config, runs_text(plan));
  }
  ProgressLine line;
  announce(plan, this_machine(), session.opening, line);
  if (session.mode == PerfMode::DryRun) {
    show_plan(plan, session.format);
    return kGood;
  }
  Measurement measured(session, std::move(plan), line);
  measured.run();
  line.clear();
  std::optional<Comparison> comparison;
  if (stored) comparison = compare(measured.report(), *stored, session.thresholds);
  write_results(measured.report(), measured.folder(), comparison);
  show(session, measured, comparison);
  if (measured.report().state != PerfState::Complete) return interrupted_code();
  return comparison && comparison->verdict() == ComparisonVerdict::Regression ? kFailed : kGood;
}

}  // namespace weft::cli
