#include "weft/cli/judge/check_report.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "weft/base/text.h"
#include "weft/cli/plan/layout_text.h"
#include "weft/config/dump.h"

namespace weft::cli {
namespace {

using base::text;
using config::Finding;

base::Json json_of(const Finding& finding) {
  base::Json json{{"id", finding.id}, {"message", finding.message}};
  if (!finding.key.empty()) json["key"] = finding.key;
  if (!finding.from.is_null() || !finding.to.is_null()) {
    json["from"] = finding.from;
    json["to"] = finding.to;
  }
  if (!finding.fix.empty()) json["fix"] = finding.fix;
  return json;
}

base::Json json_of(const rules::Missing& missing) {
  return {{"part", missing.part},
          {"keys", missing.keys},
          {"message", missing.message},
          {"fix", missing.fix}};
}

base::Json json_of(const MemoryLimit& limit) { return to_json(limit); }

base::Json json_of(const rules::Note& note) {
  return {{"id", note.id}, {"key", note.key}, {"message", note.message}, {"fix", note.fix}};
}

base::Json json_of(const rules::OverlapMode& mode) {
  return {{"name", mode.name}, {"on", mode.on}, {"automatic", mode.automatic}, {"why", mode.why}};
}

template <typename Item>
base::Json list_of(const std::vector<Item>& items) {
  base::Json list = base::Json::array();
  for (const Item& item : items) list.push_back(json_of(item));
  return list;
}

std::string line(std::string_view id, std::string_view message, std::string_view fix) {
  std::string all = text("  {:<7} {}\n", id, message);
  if (!fix.empty()) all += text("  {:<7} -> {}\n", "", fix);
  return all;
}

std::string heading(const CheckReport& report) {
  const rules::Verdict& verdict = report.verdict;
  if (report.readable == Readable::No) {
    return text("could not parse the arguments: {}; nothing else was judged\n",
                base::counted(std::ssize(verdict.errors), "error"));
  }
  const std::string name = report.recipe.empty() ? "defaults" : report.recipe;
  if (!verdict.legal()) {
    return text("{}: not legal, {}\n", name, base::counted(std::ssize(verdict.errors), "error"));
  }
  std::string fits = report.limits.empty() ? "" : ", does not fit";
  if (!report.fits.empty()) fits = ", fits " + report.fits;
  if (report.fits_narrowly) fits += " narrowly by an estimate (weft memory counts)";
  if (verdict.runs()) return text("{}: legal, runs in this build{}\n", name, fits);
  return text("{}: legal, does not run in this build ({} missing){}\n",
              name,
              verdict.missing.size(),
              fits);
}

std::string findings_text(const char* title, const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  std::string all = text("\n{}\n", title);
  for (const Finding& finding : findings) all += line(finding.id, finding.message, finding.fix);
  return all;
}

std::string_view section_of(std::string_view key) { return key.substr(0, key.rfind('.')); }
std::string_view leaf_of(std::string_view key) { return key.substr(key.rfind('.') + 1); }

// Sections with an equal key, set to the same value for the same reason.
struct Automatic {
  const Finding* finding = nullptr;  // the first
  std::vector<std::string_view> sections;
};

std::vector<Automatic> by_name(const std::vector<Finding>& findings) {
  std::vector<Automatic> all;
  for (const Finding& finding : findings) {
    const auto same = std::ranges::find_if(all, [&](const Automatic& each) {
      const Finding& first = *each.finding;
      return std::tie(first.id, first.to, first.message) ==
                 std::tie(finding.id, finding.to, finding.message) &&
             leaf_of(first.key) == leaf_of(finding.key);
    });
    Automatic& one = same == all.end() ? all.emplace_back(Automatic{&finding, {}}) : *same;
    one.sections.push_back(section_of(finding.key));
  }
  return all;
}

std::string automatic_text(const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  std::string all = "\nset automatically\n";
  for (const Automatic& each : by_name(findings)) {
    const Finding& finding = *each.finding;
    const std::string also =
        each.sections.size() == 1
            ? ""
            : text(" (also of {})",
                   fmt::join(each.sections.begin() + 1, each.sections.end(), ", "));
    all += text("  {:<7} {}{}: {} -> {} ({})\n",
                finding.id,
                finding.key,
                also,
                finding.from.dump(),
                finding.to.dump(),
                finding.message);
  }
  return all;
}

std::string modes_text(const std::vector<rules::OverlapMode>& modes) {
  if (modes.empty()) return "";
  std::string all = "\noverlap\n";
  for (const rules::OverlapMode& mode : modes) all += text("  {}\n", rules::to_line(mode));
  return all;
}

// Summary of the content of --verbose.
std::string verbose_hint(const CheckReport& report) {
  const std::size_t keys = by_name(report.verdict.automatic).size();
  if (keys == 0 && report.modes.empty()) return "";
  return text("\n--verbose lists {} set automatically, and what overlaps.\n",
              base::counted(static_cast<std::int64_t>(keys), "key"));
}

std::string missing_text(const std::vector<rules::Missing>& missing) {
  if (missing.empty()) return "";
  std::string all = "\nmissing in this build\n";
  for (const rules::Missing& part : missing) {
    all += text("  {}\n          -> {}\n", part.message, part.fix);
  }
  return all;
}

std::string limits_text(const std::vector<MemoryLimit>& limits) {
  if (limits.empty()) return "";
  std::string all = "\ndoes not fit\n";
  for (const MemoryLimit& limit : limits) all += text("  {}\n", to_text(limit));
  return all;
}

}  // namespace

base::Json to_json(const CheckReport& report) {
  const rules::Verdict& verdict = report.verdict;
  base::Json json{
      {"recipe", report.recipe},
      {"legal", verdict.legal()},
      {"runs", verdict.runs() && report.limits.empty()},
      {"missing", list_of(verdict.missing)},
      {"fits", nullptr},
      {"limits", list_of(report.limits)},
      {"errors", list_of(verdict.errors)},
      {"warnings", list_of(verdict.warnings)},
      {"auto", list_of(verdict.automatic)},
      {"advice", list_of(report.advice)},
      {"overlap", list_of(report.modes)},
      {"config",
       report.readable == Readable::Yes ? config::to_json(verdict.config) : base::Json(nullptr)},
      {"derived", nullptr}};
  if (!report.fits.empty() || !report.limits.empty()) json["fits"] = report.limits.empty();
  if (report.derived) json["derived"] = derive::to_json(*report.derived);
  if (report.schedule) json["schedule"] = to_json(*report.schedule);
  if (report.memory) json["memory"] = stages_json(report.memory->forecast);
  return json;
}

std::string to_text(const CheckReport& report, Detail detail) {
  const rules::Verdict& verdict = report.verdict;
  std::string all = heading(report) + limits_text(report.limits) +
                    findings_text("errors", verdict.errors) + missing_text(verdict.missing) +
                    findings_text("warnings", verdict.warnings);
  if (!report.advice.empty()) all += "\nadvice\n";
  for (const rules::Note& note : report.advice) all += line(note.id, note.message, note.fix);
  if (report.derived) {
    all += text("\nthe run\n{}{}\n", derive::to_text(*report.derived), kAxisLegend);
  }
  if (report.memory) all += "\nmemory\n" + stages_text(*report.memory);
  if (report.schedule) {
    all += "\nschedule\n" + to_text(*report.schedule);
  } else if (report.wish == ScheduleWish::Verify) {
    all += "\nschedule\n  not planned: the run is not legal\n";
  }
  if (detail == Detail::Verbose) {
    all += automatic_text(verdict.automatic) + modes_text(report.modes);
  } else {
    all += verbose_hint(report);
  }
  if (!verdict.errors.empty() || !report.advice.empty()) {
    all += "\nweft check --explain ID tells the story of a rule.\n";
  }
  return all;
}

}  // namespace weft::cli
