#include <gtest/gtest.h>

#include "tests/cli/program_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace data_test {

namespace fs = std::filesystem;
using base::Json;
using base::text;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class DataCommand : public ::testing::Test {
 protected:
  DataCommand() {
    dir_ =
        fs::path(::testing::TempDir()) /
        text("weft_cli_data_{}", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    std::string lines;
    for (int i = 0; i < 40; ++i) {
      lines += "{\"tokens\": [";
      for (int j = 0; j < 50; ++j) lines += text("{}{}", j == 0 ? "" : ",", (i * 7 + j) % 256);
      lines += "]}\n";
    }
    base::write_whole(dir_ / "a.jsonl", lines);
  }
  ~DataCommand() override { fs::remove_all(dir_); }

  std::string at(const std::string& name) const { return (dir_ / name).string(); }
  std::int64_t entries() const {
    return std::distance(fs::directory_iterator(dir_), fs::directory_iterator());
  }

  fs::path dir_;
};

TEST_F(DataCommand, WhatIsImportedIsShownAndTrainedOn) {
  const Outcome imported =
      weft(text("data import {} --vocab-size 256 --out {} --json", at("a.jsonl"), at("corpus")));
  ASSERT_EQ(imported.code, 0) << imported.err;
  const Json json = Json::parse(imported.out);
  EXPECT_EQ(json["documents"], 40);
  EXPECT_EQ(json["sequences"], 40);
  EXPECT_EQ(json["tokens"], 2000);
  EXPECT_EQ(json["dtype"], "u16");

  const Outcome shown = weft(text("data show {} --document 1 --tokens 3 --json", at("corpus")));
  ASSERT_EQ(shown.code, 0) << shown.err;
  const Json held = Json::parse(shown.out);
  for (const char* key : {"documents", "sequences", "tokens", "dtype", "bin_bytes", "idx_bytes"}) {
    EXPECT_EQ(held[key], json[key]) << key;
  }
  EXPECT_EQ(held["document"]["first_tokens"], (std::vector<int>{7, 8, 9}));
  const std::string page = weft(text("data show {}.idx --document 0", at("corpus"))).out;
  EXPECT_PRED2(has, page, "40 documents, 40 sequences, 2000 tokens of u16");
  EXPECT_PRED2(has, page, "document 0, 50 tokens: 0 1 2 3");

  const Outcome trained =
      weft(text("train tiny world=1 ep=1 dataset.kind=indexed dataset.path={} train.train_iters=2 "
                "model.seq_length=16 mbs=1 gbs=2 runtime.run_dir={} --json",
                at("corpus"),
                at("run")));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(Json::parse(trained.out)["steps"], 2);
}

TEST_F(DataCommand, WrongUseIsSaid) {
  struct Case {
    std::string arguments, part;
  };
  base::write_whole(dir_ / "bad.jsonl", "[1]\n[x]\n");
  const std::vector<Case> cases{
      Case{text("import {}", at("a.jsonl")), "--out"},
      {text("import --out {}", at("o")), "FILE"},
      {text("import {} --out {}", at("none.jsonl"), at("o")), "none.jsonl"},
      {text("import {} --out {}", at("bad.jsonl"), at("o")), "line 2"},
      {text("import {} --out {} --format cvs", at("a.jsonl"), at("o")), "cvs"},
      {text("import {} --out {} --dtype f4", at("a.jsonl"), at("o")), "u16"},
      {text("import {} --out {} --vocab-size 9", at("a.jsonl"), at("o")), "line 1, token 9"},
      {text("show {}", at("o")), "o.idx"},
      {text("show {} --document 40", WEFT_SOURCE_DIR "/tests/golden/megatron_u16"),
       "40 documents"}};
  for (const Case& wrong : cases) {
    const Outcome outcome = weft("data " + wrong.arguments);
    EXPECT_EQ(outcome.code, 2) << wrong.arguments << outcome.err;
    EXPECT_EQ(outcome.out, "") << wrong.arguments;
    EXPECT_PRED2(has, outcome.err, wrong.part);
  }
  EXPECT_EQ(entries(), 2) << "nothing half-written";
}

TEST_F(DataCommand, CtrlCLeavesNothing) {
  const Outcome outcome =
      shell("bash",
            text("truncate -s 512M {0}/zeros.bin\n"
                 "'{1}' data import {0}/zeros.bin --dtype u8 --vocab-size 256 --out {0}/o &\n"
                 "for i in $(seq 200); do\n"
                 "  ls {0}/o.bin.*.partial >/dev/null 2>&1 && break\n"
                 "  sleep 0.01\n"
                 "done\n"
                 "kill -INT $!\n"
                 "wait $!\n",
                 dir_.string(),
                 WEFT_BINARY));
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_PRED2(has, outcome.err, "nothing was written");
  EXPECT_EQ(entries(), 2) << "the two inputs";
}

TEST_F(DataCommand, HelpShowsAnExample) {
  for (const char* command : {"data", "data import", "data show"}) {
    EXPECT_PRED2(has, weft(text("{} --help", command)).out, "Example: weft data");
  }
}

}  // namespace data_test
}  // namespace weft::cli
