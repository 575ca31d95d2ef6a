#include "weft/cli/judge/recipes_start.h"

#include <algorithm>
#include <map>

#include "weft/base/text.h"
#include "weft/cli/command.h"
#include "weft/cli/run/temporary_folder.h"
#include "weft/cli/terminal/interrupt.h"
#include "weft/cli/terminal/progress.h"
#include "weft/derive/derived.h"
#include "weft/measure/runs/start.h"

namespace weft::cli {
namespace {

using base::text;
using measure::StartState;

struct Tried {
  const Runnable* runnable;
  measure::Start start;
};

struct StartReport {
  std::vector<Tried> tried;
  std::size_t asked = 0;

  bool interrupted() const { return tried.size() < asked; }
  std::int64_t count(StartState state) const {
    return std::ranges::count(tried, state, [](const Tried& each) { return each.start.state; });
  }
};

StartReport try_all(const std::vector<Runnable>& runnables) {
  StartReport report{.tried = {}, .asked = runnables.size()};
  const TemporaryFolder folder;
  const std::atomic<bool>& stop = catch_interrupts();
  ProgressLine line;
  for (const Runnable& each : runnables) {
    const std::size_t at = report.tried.size();
    line.show(text("{} {}/{}  {}",
                   bar(static_cast<double>(at) / static_cast<double>(runnables.size()), 24),
                   at + 1,
                   runnables.size(),
                   each.name));
    auto start = stop ? std::nullopt
                      : measure::try_start({.config = each.config,
                                            .run_dir = folder.path() / text("{}", at),
                                            .stop = &stop});
    if (!start) break;
    report.tried.push_back({.runnable = &each, .start = std::move(*start)});
  }
  return report;
}

std::string totals_text(const StartReport& report) {
  std::string all = text("{} of {} start; {} miss a part, {} illegal, {} failed\n",
                         report.count(StartState::Started),
                         base::counted(std::ssize(report.tried), "recipe"),
                         report.count(StartState::Missing),
                         report.count(StartState::Illegal),
                         report.count(StartState::Failed));
  if (report.interrupted()) {
    all += text("interrupted: {} not tried\n", report.asked - report.tried.size());
  }
  return all;
}

// Missing parts, the most frequent first.
std::string parts_text(const StartReport& report) {
  std::map<std::string, int> recipes;
  for (const Tried& each : report.tried) {
    if (each.start.state != StartState::Missing) continue;
    for (const std::string& part : each.start.why) ++recipes[part];
  }
  if (recipes.empty()) return "";
  std::vector<std::pair<std::string, int>> parts(recipes.begin(), recipes.end());
  std::ranges::stable_sort(parts, std::greater(), &std::pair<std::string, int>::second);
  std::string all = "\nrecipes  miss\n";
  for (const auto& [part, count] : parts) all += text("{:>7}  {}\n", count, part);
  return all;
}

std::string table_text(const StartReport& report) {
  std::size_t width = 4;
  for (const Tried& each : report.tried) width = std::max(width, each.runnable->name.size());
  std::string all = text("\n{:<{}}  state    seconds  why\n", "name", width);
  for (const Tried& each : report.tried) {
    const std::string row = text("{:<{}}  {:<7}  {:>7.2f}  {}",
                                 each.runnable->name,
                                 width,
                                 measure::word(each.start.state),
                                 each.start.seconds,
                                 fmt::join(each.start.why, "; "));
    all += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  return all;
}

std::string to_text(const StartReport& report) {
  return totals_text(report) + parts_text(report) + table_text(report) +
         text(
             "\nstarted: rank 0 of a twin, the recipe at small widths on few ranks, trained {} "
             "steps among pretended peers; missing: the same, without the parts named\n",
             measure::kStartSteps);
}

base::Json to_json(const StartReport& report) {
  base::Json list = base::Json::array();
  for (const Tried& each : report.tried) {
    list.push_back({{"name", each.runnable->name},
                    {"summary", each.runnable->summary},
                    {"gpus", derive::layout_of(each.runnable->config).world},
                    {"start", measure::word(each.start.state)},
                    {"why", each.start.why},
                    {"seconds", each.start.seconds}});
  }
  return {{"started", report.count(StartState::Started)},
          {"missing", report.count(StartState::Missing)},
          {"illegal", report.count(StartState::Illegal)},
          {"failed", report.count(StartState::Failed)},
          {"interrupted", report.interrupted()},
          {"recipes", std::move(list)}};
}

}  // namespace

int start_recipes(const std::vector<Runnable>& runnables, Format format) {
  const StartReport report = try_all(runnables);
  switch (format) {
    case Format::Text:
      print_text(to_text(report));
      break;
    case Format::Json:
      print_json(to_json(report));
      break;
  }
  if (report.count(StartState::Failed) > 0) return kFailed;
  return report.interrupted() ? interrupted_code() : kGood;
}

}  // namespace weft::cli
