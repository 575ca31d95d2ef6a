// Lines of Megatron-LM and of its harness, each with facts about its run: pasted_lines.txt.
#include <gtest/gtest.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/derive/parameters.h"
#include "weft/rules/validate.h"
#include "weft/words/megatron/shell_words.h"
#include "weft/words/resolution.h"

namespace weft::words {

using namespace config;
namespace pasted_lines_test {

struct Entry {
  std::string name, line;
  std::vector<std::string> facts;
};

std::vector<Entry> entries() {
  std::vector<Entry> all;
  const std::string file = base::read_text(WEFT_SOURCE_DIR "/tests/words/pasted_lines.txt");
  for (const std::string& line : base::split(file, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    if (!line.starts_with("= ")) {
      all.back().line += (all.back().line.empty() ? "" : "\n") + line;
      continue;
    }
    const std::size_t colon = line.find(": ");
    all.push_back({.name = line.substr(2, colon - 2),
                   .line = "",
                   .facts = base::split(line.substr(colon + 2), ' ')});
  }
  return all;
}

// A quoted line is one word, as a shell passes it.
std::vector<std::string> words_of(const std::string& line) {
  const bool quoted = line.starts_with('\'') && line.ends_with('\'');
  if (quoted) return {line.substr(1, line.size() - 2)};
  std::string one = line;
  std::ranges::replace(one, '\n', ' ');
  std::string escaped;
  for (const char c : one) {
    if (c == '(' || c == ')') escaped += '\\';
    escaped += c;
  }
  return shell_words(escaped);
}

bool speaks(const rules::Verdict& verdict, const Resolution& run, std::string_view id) {
  const auto is = [&](const Finding& finding) { return finding.id == id; };
  return std::ranges::any_of(run.warnings, is) || std::ranges::any_of(run.automatic, is) ||
         std::ranges::any_of(verdict.warnings, is);
}

void hold(const std::string& fact, const Resolution& run, const rules::Verdict& verdict) {
  const std::size_t equals = fact.find('=');
  const std::string key = fact.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : fact.substr(equals + 1);
  if (fact == "legal") {
    for (const Finding& error : verdict.errors) ADD_FAILURE() << error.id << ": " << error.message;
  } else if (key == "says") {
    EXPECT_TRUE(speaks(verdict, run, value)) << fact;
  } else if (key == "params") {
    EXPECT_EQ(derive::parameters_of(run.config.model).total, std::stoll(value));
  } else {
    const Field* field = find_field(key);
    ASSERT_NE(field, nullptr) << key;
    Config asked = run.config;
    ASSERT_TRUE(field->set(asked, written_from_text(*field, value))) << fact;
    EXPECT_EQ(value_text(*field, verdict.config), value_text(*field, asked)) << fact;
  }
}

TEST(PastedLines, EachIsTheRunThatItsProgramWouldDo) {
  for (const Entry& entry : entries()) {
    SCOPED_TRACE(entry.name);
    try {
      const Resolution run =
          resolve_words(WEFT_SOURCE_DIR "/recipes", words_of(entry.line), Audience::Run);
      const rules::Verdict verdict = rules::judge(run.config);
      for (const std::string& fact : entry.facts) hold(fact, run, verdict);
    } catch (const base::ConfigError& error) {
      for (const std::string& complaint : error.complaints()) ADD_FAILURE() << complaint;
    }
  }
}

}  // namespace pasted_lines_test
}  // namespace weft::words
