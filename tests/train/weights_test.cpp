// What a Hugging Face folder decides of a run, and what a run writes as one.
#include "weft/train/weights.h"

#include <gtest/gtest.h>

#include "weft/base/json.h"
#include "weft/config/recipe.h"

namespace weft::train {
namespace {

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
      config_of(config::load_recipe(kSource / "recipes/deepseek_v3_twin.yaml"), {});
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

}  // namespace
}  // namespace weft::train
