// Keys that a Hugging Face folder sets for a run, and the folder that a run writes.
#include "weft/train/weights.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/train/train_support.h"
#include "weft/base/files/file.h"
#include "weft/base/json.h"
#include "weft/words/recipe.h"

namespace weft::train {
namespace weights_test {

namespace fs = std::filesystem;

const fs::path kSource(WEFT_SOURCE_DIR);

// By its rule, the old name of two keys would override the folder's values.
TEST(Weights, TheFolderDecidesItsGroupsUnderTheirOldNameToo) {
  config::Config config;
  config.model.moe_router_topk_limited_devices = 1;
  const checkpoint::HuggingFaceModel folder(kSource / "tests/golden/deepseek_v3_tiny");
  const config::Config adopted = with_model_of(config, folder);
  EXPECT_EQ(adopted.model.moe_router_num_groups, 4);
  EXPECT_EQ(adopted.model.moe_router_group_topk, 2);
  EXPECT_EQ(adopted.model.moe_router_topk_limited_devices, std::nullopt);
}

// Transformers 4 reads the factor as the ratio of the two numbers of positions.
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
  start.model.max_position_embeddings = 4321;
  const std::string text = huggingface_config_text(huggingface_config_for(twin.model, &start));
  const checkpoint::HuggingFaceConfig read = checkpoint::parse_huggingface_config(text, "a file");
  EXPECT_EQ(read.bos_token_id, 7);
  EXPECT_EQ(read.eos_token_ids, (std::vector<std::int64_t>{8, 9}));
  EXPECT_FALSE(read.use_cache);
  EXPECT_EQ(read.model.max_position_embeddings, 4321);
}

class HuggingFaceOut : public ::testing::TestWithParam<base::DType> {};

INSTANTIATE_TEST_SUITE_P(Precisions,
                         HuggingFaceOut,
                         ::testing::Values(base::DType::F32, base::DType::BF16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// File with a run's first weights.
std::string written_by(const config::Config& config,
                       devices::DeviceKind device,
                       const fs::path& folder) {
  fs::remove_all(folder);
  on_ranks(
      config,
      [&](Engine& engine) {
        save_weights(engine, folder, huggingface_config_for(engine.config().model));
      },
      {},
      device);
  return base::read_text(folder / "model.safetensors");
}

using Values = std::vector<std::vector<float>>;

// Weights, and the optimizers' copies of them.
Values weights_of(Engine& engine) {
  Values all;
  for (const model::Parameter& parameter : engine.parameters().all()) {
    all.push_back(floats_of(engine, parameter.weight));
  }
  for (const OptimizerShare& of : engine.optimizers()) {
    all.push_back(floats_of(engine, of.adamw.master()));
  }
  return all;
}

void expect_read_again(const config::Config& config,
                       devices::DeviceKind device,
                       const fs::path& folder) {
  const checkpoint::HuggingFaceModel model(folder);
  on_ranks(
      config,
      [&](Engine& engine) {
        const Values before = weights_of(engine);
        for (const model::Parameter& parameter : engine.parameters().all()) {
          fill(engine, parameter.weight, 0);
        }
        for (const OptimizerShare& of : engine.optimizers()) fill(engine, of.adamw.master(), 0);
        load_weights(engine, model);
        EXPECT_EQ(before, weights_of(engine));
      },
      {},
      device);
}

// Per process: several builds may run the test at once.
fs::path folder_for(std::string_view what) {
  return fs::path(::testing::TempDir()) / fmt::format("weft_hf_out_{}_{}", what, ::getpid());
}

TEST_P(HuggingFaceOut, EveryLayoutOnEveryDeviceWritesTheSameFileAndReadsIt) {
  const fs::path folder = folder_for(name_of(GetParam()));
  config::Config config = small_config();
  config.model.params_dtype = GetParam();
  config.model.moe_router_pre_softmax = true;
  config.model.moe_router_norm_topk_prob = true;
  const std::string expected = written_by(config, devices::DeviceKind::Cpu, folder);
  LayoutCase v{.world = 4, .ep = 2, .pp = 2, .vpp = 2, .stages = "E|t|t|tL"};
  v.schedule = config::PipelineSchedule::DualPipeV;
  for (const LayoutCase& layout : {LayoutCase{},
                                   LayoutCase{.world = 2, .ep = 2},
                                   LayoutCase{.world = 4, .ep = 2},
                                   LayoutCase{.world = 4, .ep = 2, .tp = 2},
                                   LayoutCase{.world = 4, .tp = 4},
                                   LayoutCase{.world = 4, .ep = 2, .etp = 2},
                                   LayoutCase{.world = 6, .ep = 2, .pp = 3, .stages = "Et||ttL"},
                                   LayoutCase{.world = 4, .ep = 2, .pp = 2, .stages = "Et|ttL"},
                                   LayoutCase{.world = 2, .pp = 2, .vpp = 2, .stages = "E|t|t|tL"},
                                   v}) {
    SCOPED_TRACE(name_of(layout));
    const config::Config laid_out = with_layout(config, layout);
    for (const devices::DeviceKind device : devices::all_devices()) {
      EXPECT_TRUE(written_by(laid_out, device, folder) == expected) << devices::name_of(device);
      expect_read_again(laid_out, device, folder);
    }
  }
  fs::remove_all(folder);
}

// Files contain no padding.
TEST(HuggingFacePadding, APaddedVocabularyWritesTheFileOfOneThatIsNot) {
  const fs::path folder = folder_for("padded");
  config::Config config = small_config();
  config.model.vocab_size = 67;
  config.model.moe_router_pre_softmax = true;
  config.model.moe_router_norm_topk_prob = true;
  const std::string expected = written_by(config, devices::DeviceKind::Cpu, folder);
  config = with_layout(config, {.world = 4, .tp = 4});
  config.model.should_pad_vocab = true;
  config.model.make_vocab_size_divisible_by = 3;
  EXPECT_TRUE(written_by(config, devices::DeviceKind::Cpu, folder) == expected);
  expect_read_again(config, devices::DeviceKind::Cpu, folder);
  fs::remove_all(folder);
}

}  // namespace weights_test
}  // namespace weft::train
