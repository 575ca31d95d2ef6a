#include "tests/rules/settled_support.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/base/text.h"
#include "weft/config/field.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::rules {

using namespace config;
namespace {

std::vector<std::string> words_in(std::string_view list) {
  std::vector<std::string> words = base::split(list, ' ');
  std::erase(words, "");
  return words;
}

void expect_value(const Config& judged, const std::string& pair, std::string_view name) {
  const std::size_t equals = pair.find('=');
  const Field* field = find_field(pair.substr(0, equals));
  ASSERT_NE(field, nullptr) << name << ": " << pair;
  Config typed = judged;
  ASSERT_TRUE(field->set(typed, written_from_text(*field, pair.substr(equals + 1)))) << pair;
  EXPECT_EQ(field->get(judged), field->get(typed)) << name << ": " << pair;
}

}  // namespace

Verdict judge_words(std::string_view words) {
  return judge(words::with_words({}, words_in(words)));
}

std::set<std::string> ids_of(const std::vector<Finding>& findings) {
  std::set<std::string> ids;
  for (const Finding& finding : findings) ids.insert(finding.id);
  return ids;
}

void expect_settled(const Case& expected) {
  const Verdict verdict = judge_words(expected.words);
  const std::vector<std::string> errors = words_in(expected.errors);
  EXPECT_EQ(ids_of(verdict.errors), std::set<std::string>(errors.begin(), errors.end()))
      << expected.name;
  for (const std::string& id : words_in(expected.warnings)) {
    EXPECT_TRUE(ids_of(verdict.warnings).contains(id)) << expected.name << ": " << id;
  }
  for (const std::string& id : words_in(expected.automatic)) {
    EXPECT_TRUE(ids_of(verdict.automatic).contains(id)) << expected.name << ": " << id;
  }
  for (const std::string& pair : words_in(expected.after)) {
    expect_value(verdict.config, pair, expected.name);
  }
}

}  // namespace weft::rules
