// weft tune leaves a recipe that runs, and a table of its trials.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/cli/program_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace tune_test {

namespace fs = std::filesystem;
using Json = base::Json;

const std::string kTiny =
    "tune overlap_bench model.num_layers=2 model.hidden_size=32 model.num_attention_heads=2 "
    "model.kv_channels=16 model.seq_length=16 model.moe_ffn_hidden_size=16 "
    "train.global_batch_size=8 runtime.pin_ranks=false --steps=6 --repeats=1 ";

class Tune : public ::testing::Test {
 protected:
  Tune() : folder_(fs::path(::testing::TempDir()) / base::text("weft_tune_cli_{}", ::getpid())) {}
  ~Tune() override { fs::remove_all(folder_); }

  std::string out() const { return "--out='" + folder_.string() + "' "; }

  const fs::path folder_;
};

TEST_F(Tune, LeavesARecipeAndATable) {
  const Outcome outcome =
      weft(kTiny + out() + "--json --vary comm_overlap.overlap_moe_expert_parallel_comm=true");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  ASSERT_EQ(json["trials"].size(), 1u) << json;
  const Json& trial = json["trials"][0];
  EXPECT_EQ(trial["change"], "comm_overlap.overlap_moe_expert_parallel_comm=true");
  EXPECT_GT(json["best_ms"], 0.0);
  const std::string recipe = json["recipe"];
  const Outcome check = weft("check --json '" + recipe + "'");
  ASSERT_EQ(check.code, 0) << check.err;
  const Json config = Json::parse(check.out)["config"];
  EXPECT_EQ(config["comm_overlap"]["overlap_moe_expert_parallel_comm"], trial["kept"]);
  EXPECT_EQ(config["train"]["global_batch_size"], 8);
  EXPECT_NE(base::read_text(folder_ / "result.md").find("| comm_overlap."), std::string::npos);
  const Outcome again = weft(kTiny + out());
  EXPECT_EQ(again.code, 2) << "a folder with a result is not written over: " << again.err;
}

TEST_F(Tune, IsForTheMachineAtHand) {
  const Outcome gpu = weft("tune qwen3_30b_a3b " + out());
  EXPECT_EQ(gpu.code, 2);
  EXPECT_NE(gpu.err.find("weft plan"), std::string::npos) << gpu.err;
  const Outcome program = weft(kTiny + out() + "--program=megatron");
  EXPECT_EQ(program.code, 2);
  EXPECT_NE(program.err.find("weft plan --program=megatron"), std::string::npos) << program.err;
  const Outcome key = weft(kTiny + out() + "--vary model.no=1,2");
  EXPECT_EQ(key.code, 2);
  EXPECT_NE(key.err.find("no key 'model.no'"), std::string::npos) << key.err;
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Tune, TheContractIsFrozen) {
  for (const char* key : {"model.num_layers=1,2", "train.global_batch_size=8,16"}) {
    const Outcome outcome = weft(kTiny + out() + "--vary=" + key);
    EXPECT_EQ(outcome.code, 2) << key;
    EXPECT_NE(outcome.err.find("cannot be compared"), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Tune, SaysThatTrialsEndedIt) {
  const Outcome outcome =
      weft(kTiny + out() +
           "--trials=1 --vary=comm_overlap.overlap_moe_expert_parallel_comm=true "
           "--vary=train.micro_batch_size=2");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("ended by --trials=1: 1 change was not tried"), std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find("no change pays"), std::string::npos) << outcome.out;
  EXPECT_TRUE(outcome.out.starts_with("measured as Weft runs it")) << outcome.out;
}

}  // namespace tune_test
}  // namespace weft::cli
