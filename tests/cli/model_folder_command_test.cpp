// Folder with only a config.json, as before the download of the weights.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/program_support.h"
#include "weft/base/files/file.h"
#include "weft/base/text.h"

namespace weft::cli {
namespace model_folder_command_test {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class ModelFolderCommand : public testing::Test {
 protected:
  ModelFolderCommand() {
    std::string name = (fs::temp_directory_path() / "weft_model_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    Json config =
        Json::parse(base::read_text(WEFT_SOURCE_DIR "/tests/golden/qwen3_moe_tiny/config.json"));
    write("known", config);
    config["quantization_config"] = {{"quant_method", "fp8"}};
    config["max_position_embeddings"] = 40960;
    write("packed", config);
    write("dense",
          {{"model_type", "qwen3"},
           {"num_hidden_layers", 2},
           {"hidden_size", 64},
           {"intermediate_size", 96},
           {"num_attention_heads", 4},
           {"num_key_value_heads", 2},
           {"vocab_size", 512},
           {"max_position_embeddings", 128}});
  }
  ~ModelFolderCommand() override { fs::remove_all(folder_); }

  void write(const std::string& name, const Json& config) const {
    fs::create_directory(folder_ / name);
    base::write_whole(folder_ / name / "config.json", config.dump());
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ModelFolderCommand, IsJudgedWithoutWeights) {
  const Json known = Json::parse(weft("check --json " + at("known")).out);
  EXPECT_EQ(known["legal"], true);
  EXPECT_EQ(known["config"]["model"]["num_moe_experts"], 8);
  EXPECT_EQ(known["config"]["model"]["seq_length"], 128) << "its positions";
  const Json packed = Json::parse(weft("check --json " + at("packed")).out);
  EXPECT_EQ(packed["legal"], true);
  EXPECT_EQ(packed["runs"], false);
  EXPECT_EQ(packed["config"]["model"]["seq_length"], 4096);
  EXPECT_EQ(packed["missing"][0]["part"], "quantized weights (fp8)");
  const Json dense =
      Json::parse(weft("check --json checkpoint.pretrained_checkpoint=" + at("dense")).out);
  EXPECT_EQ(dense["legal"], true);
  EXPECT_EQ(dense["missing"][0]["part"], "weights of qwen3");
}

TEST_F(ModelFolderCommand, ItsMemoryIsPredicted) {
  for (const char* name : {"known", "packed", "dense"}) {
    const Outcome memory = weft("memory model.seq_length=16 " + at(name));
    EXPECT_EQ(memory.code, 0) << memory.err;
    EXPECT_TRUE(holds(memory.out, "pp rank 0")) << memory.out;
  }
}

TEST_F(ModelFolderCommand, APlanSaysWhereItsLengthIsFrom) {
  const Outcome plan = weft("plan --gpus=1 --gpu=h100 --top=1 " + at("packed"));
  ASSERT_EQ(plan.code, 0) << plan.err;
  const std::string head = plan.out.substr(0, plan.out.find('\n'));
  EXPECT_TRUE(holds(head, "8 sequences of 4096 tokens (")) << head;
  EXPECT_TRUE(holds(head, "max_position_embeddings=40960")) << head;
  EXPECT_TRUE(holds(head, "--seq=N")) << head;
  const Outcome given = weft("plan --gpus=1 --gpu=h100 --top=1 --gbs=1 --seq=64 " + at("dense"));
  EXPECT_TRUE(holds(given.out, "1 sequence of 64 tokens a step")) << given.out << given.err;
}

TEST_F(ModelFolderCommand, WhatIsNotThereOrNotReadIsWrongInput) {
  EXPECT_EQ(weft("memory checkpoint.pretrained_checkpoint=" + at("nowhere")).code, 2);
  EXPECT_EQ(weft("check " + at("nowhere.json")).code, 2);
  const Outcome train = weft("train train.train_iters=1 " + at("dense"));
  EXPECT_EQ(train.code, 2);
  EXPECT_TRUE(holds(train.err, "weights of qwen3 are not read yet")) << train.err;
  EXPECT_EQ(weft("train train.train_iters=1 " + at("known")).code, 2) << "no weights";
}

}  // namespace model_folder_command_test
}  // namespace weft::cli
