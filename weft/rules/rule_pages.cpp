#include "weft/rules/rule_pages.h"

#include <algorithm>
#include <cctype>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/rules/advice/advice.h"
#include "weft/rules/parallel/tp_presets.h"
#include "weft/rules/rule.h"

namespace weft::rules {

using namespace config;
namespace {

using base::text;

// Constraints of Megatron that Weft has no rule for.
struct Absent {
  std::string_view ids;
  std::string_view why;
};
constexpr Absent kAbsent[] = {
    {"C7 C13 C18 C26 C27 TC-27 TC-60 TC-71 TC-103", "versions of PyTorch and Transformer Engine"},
    {"C40 V16 V17", "Energon datasets, which Weft does not read"},
    {"V5 V6", "finetuning, which Weft does not have"},
    {"V22", "offload hooks of Transformer Engine"},
    {"V27", "restoring ModelOpt models, which Weft does not do"},
    {"V30 F12 F13 F15", "environment variables and SM counts of a launcher"},
    {"F6", "a device probe that fails; here hardware.* is asked, not a device"},
    {"B6", "a kernel fusion that Weft does not offer as a choice"},
    {"C1 C38", "how Megatron resolves a config twice; here it is judged once"},
    {"TC-35 TC-59 TC-74", "notes on how modules run, not conditions"},
    {"TC-23 TC-76", "options that Weft has no key for"},
};

// Escapes bars, which would end the table cell.
std::string cell(std::string_view words) {
  std::string escaped;
  for (const char c : words) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string also(const Rule& rule) {
  if (rule.also.empty()) return "";
  return text(" ({})", fmt::join(base::split(rule.also, ' '), ", "));
}

std::string example_line(const Rule& rule) {
  return text("weft {} {}", rule.command, rule.example);
}

std::string row(const Rule& rule) {
  return text("| {}{} | {} | {} | {} | {} | `{}` |\n",
              rule.id,
              also(rule),
              word(rule.kind),
              cell(rule.when),
              cell(rule.then),
              cell(rule.why),
              cell(rule.command == "check" ? std::string(rule.example) : example_line(rule)));
}

std::string row(const Advice& advice) {
  return text("| {} | {} | {} | {} | {} |\n",
              advice.id,
              cell(advice.when),
              cell(advice.then),
              cell(advice.why),
              cell(advice.measured));
}

std::string story(const Rule& rule) {
  return text(
      "{}{}, {}\n"
      "when     {}\n"
      "then     {}\n"
      "why      {}\n"
      "example  {}\n",
      rule.id,
      also(rule),
      word(rule.kind),
      rule.when,
      rule.then,
      rule.why,
      example_line(rule));
}

std::string story(const Advice& advice) {
  return text(
      "{}, advice\n"
      "when      {}\n"
      "then      {}\n"
      "why       {}\n"
      "measured  {}\n"
      "example   weft check {}\n",
      advice.id,
      advice.when,
      advice.then,
      advice.why,
      advice.measured,
      advice.example);
}

std::vector<std::string> all_ids() {
  std::vector<std::string> ids;
  for (const Rule& rule : rules()) {
    ids.emplace_back(rule.id);
    for (std::string& other : base::split(rule.also, ' ')) ids.push_back(std::move(other));
  }
  for (const Advice& advice : all_advice()) ids.emplace_back(advice.id);
  for (const Absent& absent : kAbsent) {
    for (std::string& other : base::split(absent.ids, ' ')) ids.push_back(std::move(other));
  }
  for (const TpPreset& preset : tp_presets()) ids.emplace_back(preset.name);
  return ids;
}

// Table spelling of an id, ignoring case.
std::string known_id(std::string_view typed) {
  const auto same = [](char a, char b) {
    return std::toupper(static_cast<unsigned char>(a)) ==
           std::toupper(static_cast<unsigned char>(b));
  };
  for (const std::string& known : all_ids()) {
    if (std::ranges::equal(known, typed, same)) return known;
  }
  return std::string(typed.substr(0, 64));
}

}  // namespace

std::string markdown_rules() {
  std::string all =
      "# Rules and advice\n\n"
      "Every rule that a run is judged by, in the order of judgement, with an example that breaks "
      "it\n"
      "and no other. An error refuses the run; an automatic rule sets a key and says so; a "
      "warning\n"
      "does neither. Ids number the conditions of Megatron (in brackets: other ids of the same "
      "rule);\n"
      "W are Weft's own. This page is `weft check --markdown`; a test holds it equal.\n"
      "`weft check --explain C14` tells one rule's story.\n";
  for (const Topic& topic : topics()) {
    if (topic.rules.empty()) continue;
    all +=
        text("\n## {}\n\n| id | kind | when | then | why | example |\n|---|---|---|---|---|---|\n",
             topic.name);
    for (const Rule& rule : topic.rules) all += row(rule);
  }
  all += "\n## Not taken over\n\n| ids | because they are about |\n|---|---|\n";
  for (const Absent& absent : kAbsent) {
    all += text("| {} | {} |\n", fmt::join(base::split(absent.ids, ' '), ", "), absent.why);
  }
  all +=
      "\n## Advice\n\n"
      "Notes on a legal run. They refuse and change nothing.\n\n"
      "| id | when | then | why | measured |\n|---|---|---|---|---|\n";
  for (const Advice& advice : all_advice()) all += row(advice);
  return all;
}

base::Json explain_json(std::string_view typed) {
  const std::string id = known_id(typed);
  if (const Rule* rule = find_rule(id)) {
    return {{"id", rule->id},
            {"also", base::split(rule->also, ' ')},
            {"kind", word(rule->kind)},
            {"when", rule->when},
            {"then", rule->then},
            {"why", rule->why},
            {"example", rule->example}};
  }
  if (const Advice* advice = find_advice(id)) {
    return {{"id", advice->id},
            {"kind", "advice"},
            {"when", advice->when},
            {"then", advice->then},
            {"why", advice->why},
            {"measured", advice->measured},
            {"example", advice->example}};
  }
  if (const TpPreset* preset = find_tp_preset(id)) return to_json(*preset);
  return {{"id", id}, {"kind", "not taken over"}, {"why", explain(typed)}};
}

std::string explain(std::string_view typed) {
  const std::string id = known_id(typed);
  if (const Rule* rule = find_rule(id)) return story(*rule);
  if (const Advice* advice = find_advice(id)) return story(*advice);
  if (const TpPreset* preset = find_tp_preset(id)) return to_text(*preset);
  for (const Absent& absent : kAbsent) {
    for (const std::string& other : base::split(absent.ids, ' ')) {
      if (other == id && find_rule(id) == nullptr) {
        return text("{}: not taken over; it is about {}\n", id, absent.why);
      }
    }
  }
  const auto best = typed.size() <= 64 ? base::nearest(id, all_ids()) : std::nullopt;
  throw base::ConfigError(
      text("no rule '{}': {}",
           shown(id),
           best ? text("did you mean '{}'? ", *best) + "docs/rules.md lists all of them"
                : "docs/rules.md lists all of them"));
}

}  // namespace weft::rules
