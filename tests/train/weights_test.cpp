// What a Hugging Face folder decides of a run, and what a run writes as one.
#include "weft/train/weights.h"

#include <gtest/gtest.h>

#include "weft/base/json.h"
#include "weft/words/recipe.h"

namespace weft::train {
namespace weights_test {

namespace fs = std::filesystem;

const fs::path kSource(WEFT_SOURCE_DIR);

// The old name of two keys would, by its rule, set them over those of the folder.
TEST(Weights, TheFolderDecidesItsGroupsUnderTheirOldNameToo) {
  config::Config config;
  config.model.moe_router_topk_limited_devices = 1;
  const checkpoint::HuggingFaceModel folder(kSource / "tests/golden/deepseek_v3_tiny");
  const config::Config adopted = with_model_of(config, folder);
  EXPECT_EQ(adopted.model.moe_router_num_groups, 4);
  EXPECT_EQ(adopted.model.moe_router_group_topk, 2);
  EXPECT_EQ(adopted.model.moe_router_topk_limited_devices, std::nullopt);
}

// As Transformers 4 reads it: the factor is the ratio of the two numbers of positions.
TEST(Weights, AWrittenTwinIsStretchedAsItTrained) {
  const config::Config twin =
      config_of(words::load_recipe(kSource / "recipes/deepseek_v3_twin.yaml"), {});
  const base::Json written =
      base::Json::parse(checkpoint::huggingface_config_text(huggingface_config_for(twin.model)));
  const base::Json& rope = written.at("rope_scaling");
  EXPECT_EQ(written.at("max_position_embeddings").get<double>() /
                rope.at("original_max_position_embeddings").get<double>(),
            twin.model.rotary_scaling_factor);
  EXPECT_EQ(rope.at("factor"), twin.model.rotary_scaling_factor);
  EXPECT_EQ(written.at("n_group"), 8);
  EXPECT_EQ(written.at("topk_group"), 4);
}

TEST(Weights, WhatAFolderSaysToThoseWhoGenerateIsWrittenAgain) {
  const config::Config twin =
      config_of(words::load_recipe(kSource / "recipes/qwen3_30b_a3b_twin.yaml"), {});
  checkpoint::HuggingFaceConfig start = huggingface_config_for(twin.model);
  start.bos_token_id = 7;
  start.eos_token_ids = {8, 9};
  start.use_cache = false;
  start.max_position_embeddings = 4321;
  const std::string text = huggingface_config_text(huggingface_config_for(twin.model, &start));
  const checkpoint::HuggingFaceConfig read = checkpoint::parse_huggingface_config(text, "a file");
  EXPECT_EQ(read.bos_token_id, 7);
  EXPECT_EQ(read.eos_token_ids, (std::vector<std::int64_t>{8, 9}));
  EXPECT_FALSE(read.use_cache);
  EXPECT_EQ(read.max_position_embeddings, 4321);
}

}  // namespace weights_test
}  // namespace weft::train
