// Searches kept in a file: used for an equal question only, and never if damaged.
#include "weft/cli/plan/plan_kept.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/cli/program_support.h"
#include "weft/base/crc32c.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace plan_kept_test {

namespace fs = std::filesystem;
using base::Json;

class PlanKept : public ::testing::Test {
 protected:
  PlanKept() : folder_(fs::path(::testing::TempDir()) / base::text("weft_kept_{}", ::getpid())) {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~PlanKept() override {
    fs::remove_all(folder_);
    before_.empty() ? ::unsetenv("XDG_CACHE_HOME") : ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) all.push_back(entry.path());
    }
    return all;
  }

  const fs::path folder_;
  std::string before_;
};

plan::KeptSearch with_shapes(std::int64_t shapes) {
  plan::KeptSearch kept{.top = 1};
  kept.search.shapes = shapes;
  return kept;
}

TEST_F(PlanKept, AnswersItsOwnQuestionAlone) {
  const KeptSearches one("one"), other("other");
  EXPECT_FALSE(one.find(1));
  one.keep(with_shapes(7));
  ASSERT_TRUE(one.find(1));
  EXPECT_EQ(one.find(1)->search.shapes, 7);
  EXPECT_FALSE(other.find(1));
  one.keep(with_shapes(8));
  EXPECT_EQ(one.find(1)->search.shapes, 8);
  EXPECT_EQ(files().size(), 1u) << "the last search of a question, and no partial file";
}

// `--top=3` goes on with a search for the ten best, and is what a search for three has first.
TEST_F(PlanKept, AnswersForAsManyLayoutsOrFewer) {
  plan::KeptSearch kept{.top = 10};
  for (int i = 0; i < 10; ++i) kept.search.ranked.push_back({.choice = {.tp = i + 1}, .price = {}});
  const KeptSearches one("one");
  one.keep(kept);
  ASSERT_TRUE(one.find(10));
  EXPECT_EQ(one.find(10)->search.ranked.size(), 10u);
  ASSERT_TRUE(one.find(3));
  EXPECT_EQ(one.find(3)->search.ranked.size(), 3u);
  EXPECT_EQ(one.find(3)->search.ranked.back().choice.tp, 3);
  EXPECT_FALSE(one.find(11));
}

TEST_F(PlanKept, ADamagedFileIsIgnored) {
  const KeptSearches one("one");
  one.keep(with_shapes(7));
  const fs::path file = files().at(0);
  const std::string whole = base::read_text(file);
  std::string damaged = whole;
  damaged[damaged.find("\"shapes\":7") + 9] = '9';
  for (const std::string& content : {std::string(), whole.substr(0, 40), damaged}) {
    base::write_whole(file, content);
    EXPECT_FALSE(one.find(1)) << content;
  }
  base::write_whole(file, whole);
  EXPECT_TRUE(one.find(1));
}

TEST_F(PlanKept, FewFilesStay) {
  for (int i = 0; i < 40; ++i) KeptSearches(std::to_string(i)).keep(with_shapes(i));
  EXPECT_LE(files().size(), 16u);
  EXPECT_TRUE(KeptSearches("39").find(1));
}

TEST_F(PlanKept, WhereNothingCanBeKeptThePlanIsWhole) {
  base::write_whole(folder_, "a file, no folder");
  const KeptSearches one("one");
  one.keep(with_shapes(7));
  EXPECT_FALSE(one.find(1));
}

// Commands at the end of a plan use the kept search: they print the contents of its file.
TEST_F(PlanKept, WhatGoesOnWithAPlanDoesNotSearchAgain) {
  const std::string ask =
      "plan qwen3-30b-a3b --gpus=16 --gpu=h100 --gbs=512 tp=1 cp=1 mbs=1 pp=2 ep=8 etp=1 vpp=2 "
      "--top=1 ";
  const Outcome first = weft(ask);
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(weft(ask).out, first.out);
  Json kept = base::parse_json(base::read_text(files()[0]));
  kept["search"]["verdicts"][0][0] = "Is this the kept search?";
  kept["sum"] = base::text("{:08x}", base::crc32c(std::string_view(kept["search"].dump())));
  base::write_whole(files()[0], kept.dump());
  EXPECT_NE(weft(ask).out.find("Is this the kept search?"), std::string::npos);
  EXPECT_EQ(weft(ask + "--fresh").out, first.out);
  // Impossible layouts must not end the program, even with a valid checksum.
  kept = base::parse_json(base::read_text(files()[0]));
  kept["search"]["ranked"][0][0][10] = 1000;
  kept["sum"] = base::text("{:08x}", base::crc32c(std::string_view(kept["search"].dump())));
  base::write_whole(files()[0], kept.dump());
  const Outcome wrong = weft(ask);
  EXPECT_EQ(wrong.out, first.out);
  EXPECT_NE(wrong.err.find("is no search that was kept here"), std::string::npos) << wrong.err;
  const std::size_t line = first.out.find("--overrides\n");
  ASSERT_NE(line, std::string::npos) << first.out;
  const std::size_t begin = first.out.rfind("weft plan", line) + 5;
  const Outcome words = weft(first.out.substr(begin, line - begin) + "--overrides");
  EXPECT_EQ(words.code, 0) << words.err;
  EXPECT_NE(words.out.find("model.expert_model_parallel_size=8"), std::string::npos);
  EXPECT_EQ(files().size(), 1u) << "the same question";
}

}  // namespace plan_kept_test
}  // namespace weft::cli
