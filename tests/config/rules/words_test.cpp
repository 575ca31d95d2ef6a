// The rules that are judged while words are read: every example makes its rule speak.
#include <gtest/gtest.h>

#include <set>

#include "weft/base/file.h"
#include "weft/base/text.h"
#include "weft/config/resolution.h"
#include "weft/config/rules/topics.h"

namespace weft::config {
namespace {

namespace fs = std::filesystem;

// A folder with the one recipe that the example of H15 wants.
class WordRules : public testing::Test {
 protected:
  WordRules() {
    std::string name = (fs::temp_directory_path() / "weft_words_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    base::write_whole(folder_ / "some_pretrain_16gpu_h100_bf16.yaml",
                      "train: {global_batch_size: 32}\n");
  }
  ~WordRules() override { fs::remove_all(folder_); }

  Resolution resolution(std::string_view example) const {
    const std::vector<std::string> words = base::split(example, ' ');
    return resolve_words(folder_, words, Audience::Perf);
  }

  fs::path folder_;
};

std::set<std::string> ids(const std::vector<Finding>& findings) {
  std::set<std::string> all;
  for (const Finding& finding : findings) all.insert(finding.id);
  return all;
}

TEST_F(WordRules, EveryExampleMakesItsRuleSpeak) {
  for (const Rule& rule : word_rules()) {
    const Resolution said = resolution(rule.example);
    const std::string id(rule.id);
    const bool warns = rule.kind == Kind::Warning || rule.kind == Kind::Mended;
    const bool sets = rule.kind == Kind::Automatic || rule.kind == Kind::Mended;
    EXPECT_EQ(ids(said.warnings).contains(id), warns) << id << ": " << rule.example;
    EXPECT_EQ(ids(said.automatic).contains(id), sets) << id << ": " << rule.example;
  }
}

TEST_F(WordRules, EveryFindingIsARuleAndSaysSomething) {
  for (const Rule& rule : word_rules()) {
    const Resolution said = resolution(rule.example);
    for (const std::vector<Finding>* findings : {&said.warnings, &said.automatic}) {
      for (const Finding& finding : *findings) {
        EXPECT_NE(find_rule(finding.id), nullptr) << finding.id;
        EXPECT_FALSE(finding.message.empty()) << finding.id;
      }
    }
    for (const Finding& set : said.automatic) EXPECT_NE(set.from, set.to) << set.id;
  }
}

TEST_F(WordRules, NoWordsNoFindings) {
  const Resolution said = resolve_words(folder_, {}, Audience::Run);
  EXPECT_TRUE(said.warnings.empty());
  EXPECT_TRUE(said.automatic.empty());
}

}  // namespace
}  // namespace weft::config
