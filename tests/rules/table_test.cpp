// Whole table of rules: every rule's example triggers it, and no other refusal.
#include <gtest/gtest.h>

#include <set>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/rules/validate.h"
#include "weft/words/recipe.h"
#include "weft/words/resolution.h"

namespace weft::rules {

using namespace config;
namespace table_test {

Verdict judge_words(std::string_view words) {
  std::vector<std::string> overrides;
  for (const std::string& word : base::split(words, ' ')) {
    if (!word.empty()) overrides.push_back(word);
  }
  return judge(words::with_words({}, overrides));
}

std::set<std::string> ids(const std::vector<Finding>& findings) {
  std::set<std::string> all;
  for (const Finding& finding : findings) all.insert(finding.id);
  return all;
}

TEST(Rules, EveryExampleBreaksExactlyItsRule) {
  for (const Rule& rule : rules()) {
    if (rule.judge == nullptr) continue;  // judged while words are read
    const std::string id(rule.id);
    const Verdict verdict = judge_words(rule.example);
    const std::set<std::string> errors = ids(verdict.errors);
    switch (rule.kind) {
      case Kind::Error:
        EXPECT_EQ(errors, std::set<std::string>{id}) << rule.example;
        break;
      case Kind::Warning:
        EXPECT_EQ(errors, std::set<std::string>{}) << id << ": " << rule.example;
        EXPECT_TRUE(ids(verdict.warnings).contains(id)) << id << ": " << rule.example;
        break;
      case Kind::Automatic:
        EXPECT_EQ(errors, std::set<std::string>{}) << id << ": " << rule.example;
        EXPECT_TRUE(ids(verdict.automatic).contains(id)) << id << ": " << rule.example;
        break;
      case Kind::Mended:
        EXPECT_EQ(errors, std::set<std::string>{}) << id << ": " << rule.example;
        EXPECT_TRUE(ids(verdict.warnings).contains(id)) << id << ": " << rule.example;
        EXPECT_TRUE(ids(verdict.automatic).contains(id)) << id << ": " << rule.example;
        break;
    }
  }
}

TEST(Rules, EveryFindingSaysWhatAndHow) {
  for (const Rule& rule : rules()) {
    if (rule.judge == nullptr) continue;
    const Verdict verdict = judge_words(rule.example);
    for (const Finding& error : verdict.errors) {
      EXPECT_FALSE(error.message.empty()) << rule.id;
      EXPECT_FALSE(error.fix.empty()) << rule.id;
    }
  }
}

TEST(Rules, IdsAreUniqueAndFound) {
  std::set<std::string_view> seen;
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(seen.insert(rule.id).second) << rule.id;
    EXPECT_EQ(find_rule(rule.id)->id, rule.id);
    for (const std::string_view text : {rule.when, rule.then, rule.why, rule.example}) {
      EXPECT_FALSE(text.empty()) << rule.id;
    }
  }
  EXPECT_EQ(find_rule("MP-1")->id, "B2");
  EXPECT_EQ(find_rule("nosuch"), nullptr);
}

TEST(Rules, ANumberOutsideItsRangeIsOneError) {
  const Verdict verdict = judge_words(find_rule("W1")->example);
  EXPECT_EQ(ids(verdict.errors), std::set<std::string>{"W1"});
  EXPECT_THROW(judge_words(find_rule("W31")->example), base::ConfigError);
}

TEST(Rules, TheDefaultsPassInPeace) {
  const Verdict verdict = judge({});
  EXPECT_TRUE(verdict.runs());
  EXPECT_EQ(ids(verdict.warnings), std::set<std::string>{});
}

TEST(Rules, WhatWasJudgedIsJudgedTheSameAgain) {
  for (const Rule& rule : rules()) {
    if (rule.judge == nullptr) continue;
    const Verdict once = judge_words(rule.example);
    const Verdict twice = judge(once.config);
    EXPECT_EQ(ids(twice.automatic), std::set<std::string>{}) << rule.id;
    EXPECT_EQ(ids(twice.errors), ids(once.errors)) << rule.id;
  }
}

}  // namespace table_test
}  // namespace weft::rules
