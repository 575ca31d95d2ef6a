#include "weft/cli/check_report.h"

#include "weft/base/text.h"
#include "weft/cli/layout_text.h"
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

std::string automatic_text(const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  std::string all = "\nset automatically\n";
  for (const Finding& finding : findings) {
    all += text("  {:<7} {}: {} -> {} ({})\n",
                finding.id,
                finding.key,
                finding.from.dump(),
                finding.to.dump(),
                finding.message);
  }
  return all;
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

std::string to_text(const CheckReport& report) {
  const rules::Verdict& verdict = report.verdict;
  std::string all = heading(report) + limits_text(report.limits) +
                    findings_text("errors", verdict.errors) +
                    findings_text("warnings", verdict.warnings) +
                    automatic_text(verdict.automatic) + missing_text(verdict.missing);
  if (!report.advice.empty()) all += "\nadvice\n";
  for (const rules::Note& note : report.advice) all += line(note.id, note.message, note.fix);
  if (!report.modes.empty()) all += "\noverlap\n";
  for (const rules::OverlapMode& mode : report.modes) {
    all += text("  {}\n", rules::to_line(mode));
  }
  if (report.derived) {
    all += text("\nthe run\n{}{}\n", derive::to_text(*report.derived), kAxisLegend);
  }
  if (report.memory) all += "\nmemory\n" + stages_text(*report.memory);
  if (report.schedule) {
    all += "\nschedule\n" + to_text(*report.schedule);
  } else if (report.wish == ScheduleWish::Verify) {
    all += "\nschedule\n  not planned: the run is not legal\n";
  }
  if (!verdict.errors.empty() || !report.advice.empty()) {
    all += "\nweft check --explain ID tells the story of a rule.\n";
  }
  return all;
}

}  // namespace weft::cli
