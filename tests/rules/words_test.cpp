// Rules judged while words are read: every example triggers its rule.
#include <gtest/gtest.h>

#include <set>

#include "weft/base/files/file.h"
#include "weft/base/text.h"
#include "weft/rules/topics.h"
#include "weft/words/resolution.h"

namespace weft::rules {

using namespace config;
namespace words_test {

namespace fs = std::filesystem;

const fs::path kRecipes = WEFT_SOURCE_DIR "/recipes";

// Resolution by the command that the rule's example is for.
words::Resolution resolution(const Rule& rule) {
  const std::vector<std::string> words = base::split(rule.example, ' ');
  return words::resolve_words(
      kRecipes,
      words,
      rule.command == "perf" ? words::Audience::Perf : words::Audience::Run);
}

std::set<std::string> ids(const std::vector<Finding>& findings) {
  std::set<std::string> all;
  for (const Finding& finding : findings) all.insert(finding.id);
  return all;
}

TEST(WordRules, EveryExampleMakesItsRuleSpeak) {
  for (const Rule& rule : word_rules()) {
    const words::Resolution said = resolution(rule);
    const std::string id(rule.id);
    const bool warns = rule.kind == Kind::Warning || rule.kind == Kind::Mended;
    const bool sets = rule.kind == Kind::Automatic || rule.kind == Kind::Mended;
    EXPECT_EQ(ids(said.warnings).contains(id), warns) << id << ": " << rule.example;
    EXPECT_EQ(ids(said.automatic).contains(id), sets) << id << ": " << rule.example;
  }
}

TEST(WordRules, EveryFindingIsARuleAndSaysSomething) {
  for (const Rule& rule : word_rules()) {
    const words::Resolution said = resolution(rule);
    for (const std::vector<Finding>* findings : {&said.warnings, &said.automatic}) {
      for (const Finding& finding : *findings) {
        EXPECT_NE(find_rule(finding.id), nullptr) << finding.id;
        EXPECT_FALSE(finding.message.empty()) << finding.id;
      }
    }
    for (const Finding& set : said.automatic) EXPECT_NE(set.from, set.to) << set.id;
  }
}

TEST(WordRules, NoWordsNoFindings) {
  const words::Resolution said = words::resolve_words(kRecipes, {}, words::Audience::Run);
  EXPECT_TRUE(said.warnings.empty());
  EXPECT_TRUE(said.automatic.empty());
}

}  // namespace words_test
}  // namespace weft::rules
