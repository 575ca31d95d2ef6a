#include "weft/config/rules/reference.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/advice/advice.h"
#include "weft/config/field.h"
#include "weft/config/rules/rule.h"

namespace weft::config {
namespace {

using base::text;

// A bar would end the table's cell.
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
  return ids;
}

}  // namespace

std::string markdown_rules() {
  std::string all =
      "# Rules and advice\n\n"
      "Every rule that a run is judged by, in the order of judgement, with an example that breaks "
      "it\n"
      "and no other. An error refuses the run; an automatic rule sets a key and says so; a "
      "warning\n"
      "does neither. Ids are those of the reference sheets (in brackets: other ids of the same "
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
  all +=
      "\n## Advice\n\n"
      "Notes on a legal run. They refuse and change nothing.\n\n"
      "| id | when | then | why | measured |\n|---|---|---|---|---|\n";
  for (const Advice& advice : all_advice()) all += row(advice);
  return all;
}

std::string explain(std::string_view id) {
  if (const Rule* rule = find_rule(id)) return story(*rule);
  if (const Advice* advice = find_advice(id)) return story(*advice);
  const auto best = id.size() <= 32 ? base::nearest(id, all_ids()) : std::nullopt;
  throw base::ConfigError(
      text("no rule '{}': {}",
           shown(id),
           best ? text("did you mean '{}'? ", *best) + "docs/rules.md lists all of them"
                : "docs/rules.md lists all of them"));
}

}  // namespace weft::config
