// Compares parameters and FLOPs of the shipped models with numbers of their publishers and of
// Megatron.
#include <gtest/gtest.h>

#include "weft/derive/derived.h"
#include "weft/words/recipe.h"

namespace weft::rules {

using namespace config;
namespace published_test {

ModelConfig model_of(const std::string& name) {
  return words::config_of(words::load_recipe(WEFT_SOURCE_DIR "/recipes/" + name + ".yaml"), {})
      .model;
}

// Router biases: published weights hold them, but they are no parameters.
std::int64_t router_biases(const ModelConfig& model) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < model.num_layers; ++i) {
    count += derive::layer_parameters(model, i).untrained;
  }
  return count;
}
std::int64_t mtp_router_biases(const ModelConfig& model) {
  return model.mtp_num_layers.value_or(0) * derive::mtp_layer_parameters(model).untrained;
}

// Tables and layers that a publisher counts as active.
enum class Tables { Both, Head, Neither };
enum class Mtp { Left, Counted };

struct Published {
  const char* name;
  std::int64_t total;      // elements of the published weights, without multi-token prediction
  double active_billions;  // as published
  double tolerance;        // half of the last published digit, or more if digits are cut off
  Tables tables;
  Mtp mtp = Mtp::Left;
};

class PublishedModel : public testing::TestWithParam<Published> {};

TEST_P(PublishedModel, HasThePublishedParameters) {
  const Published& published = GetParam();
  const ModelConfig model = model_of(published.name);
  const derive::ParameterCount count = derive::parameters_of(model);
  EXPECT_EQ(count.total - count.mtp + router_biases(model), published.total);
  std::int64_t active = count.active;
  const std::int64_t table = model.vocab_size * model.hidden_size;
  if (published.tables != Tables::Both) active -= table;
  if (published.tables == Tables::Neither) active -= table;
  if (published.mtp == Mtp::Counted) active += derive::mtp_layer_parameters(model).active();
  EXPECT_NEAR(static_cast<double>(active) / 1e9, published.active_billions, published.tolerance);
  EXPECT_GE(derive::rough_parameters(model), static_cast<double>(count.total));
}

constexpr Published kPublished[] = {
    {"qwen3_30b_a3b", 30532122624, 3.3, 0.06, Tables::Both},
    {"qwen3_235b_a22b", 235093634560, 22, 0.5, Tables::Both},
    {"qwen3_next_80b_a3b", 79674391296, 3, 0.5, Tables::Neither},
    {"deepseek_v3", 671026419200, 37, 0.5, Tables::Head},
    {"deepseek_v2_lite", 15706484224, 2.4, 0.06, Tables::Head},
    {"mixtral_8x7b", 46702792704, 12.9, 0.05, Tables::Both},
    {"gpt_oss_20b", 20914757184, 3.61, 0.005, Tables::Head},
    {"gpt_oss_120b", 116829156672, 5.13, 0.005, Tables::Head},
    {"kimi_k2", 1026408232448, 32, 0.5, Tables::Head},
    {"moonlight_16b", 15960110208, 2.24, 0.005, Tables::Neither},
    {"glm45_355b", 352797829024, 32, 0.5, Tables::Neither, Mtp::Counted},
    {"glm45_air_106b", 106852251264, 12, 0.5, Tables::Neither},
    {"olmoe_7b", 6919161856, 1.3, 0.05, Tables::Both},
};

INSTANTIATE_TEST_SUITE_P(Models,
                         PublishedModel,
                         testing::ValuesIn(kPublished),
                         [](const auto& test) { return std::string(test.param.name); });

// Published weights of multi-token prediction hold copies of embedding and head, except Qwen's.
TEST(Published, WeightsOfModelsWithMultiTokenPrediction) {
  const auto with_tables = [](const char* name, std::int64_t tables) {
    const ModelConfig model = model_of(name);
    return derive::parameters_of(model).total + router_biases(model) + mtp_router_biases(model) +
           tables * model.vocab_size * model.hidden_size;
  };
  EXPECT_EQ(with_tables("qwen3_next_80b_a3b", 0), 81324862720);
  EXPECT_EQ(with_tables("glm45_355b", 2), 358337791296);
  EXPECT_EQ(with_tables("glm45_air_106b", 2), 110468824832);
  // 685 B = 671 + 14, including the scales of fp8 weights, one per 128 * 128.
  const auto deepseek = static_cast<double>(with_tables("deepseek_v3", 2));
  EXPECT_NEAR(deepseek * (1 + 1.0 / (128 * 128)) / 1e9, 685, 0.5);
}

// Names: GLM-4.5 is 355 B without tables, with multi-token prediction; Air 106 B without both.
TEST(Published, RoundedTotals) {
  const auto billions = [](const char* name) {
    const ModelConfig model = model_of(name);
    return static_cast<double>(derive::parameters_of(model).total -
                               2 * model.vocab_size * model.hidden_size) /
           1e9;
  };
  EXPECT_NEAR(billions("glm45_355b"), 355, 0.5);
  const auto mtp = static_cast<double>(derive::parameters_of(model_of("glm45_air_106b")).mtp) / 1e9;
  EXPECT_NEAR(billions("glm45_air_106b") - mtp, 106, 0.5);
}

TEST(Published, FlopsPerTokenOfTheReferencesTable) {
  const auto expect = [](const ModelConfig& model, double billions) {
    EXPECT_NEAR(derive::flops_per_token(model) / 1e9, billions, billions * 1e-4);
  };
  expect(model_of("qwen3_30b_a3b"), 23.006);
  expect(model_of("qwen3_235b_a22b"), 148.035);
  expect(model_of("deepseek_v3"), 259.993);
  expect(model_of("kimi_k2"), 204.477);
  expect(model_of("gpt_oss_120b"), 32.630);
  ModelConfig alone = model_of("deepseek_v3");
  alone.mtp_num_layers = std::nullopt;
  expect(alone, 249.812);
}

TEST(Published, FlopsOfLinearAttentionDoNotGrowWithTheSequence) {
  ModelConfig model = model_of("qwen3_next_80b_a3b");
  model.mtp_num_layers = std::nullopt;
  const double short_one = derive::flops_per_token(model);
  model.seq_length *= 2;
  // 12 of 48 layers keep full attention of 16 heads of 256.
  EXPECT_DOUBLE_EQ(derive::flops_per_token(model) - short_one, 6.0 * 12 * 4096 * 4096);
}

TEST(Published, TokensThatTravelNarrowComputeNarrow) {
  ModelConfig model = model_of("qwen3_30b_a3b");
  const double wide = derive::flops_per_token(model);
  const std::int64_t parameters = derive::parameters_of(model).total;
  model.moe_latent_size = 1024;
  const double layers = 48;
  EXPECT_DOUBLE_EQ(derive::flops_per_token(model) - wide,
                   6 * layers * (2.0 * 2048 * 1024 - 3.0 * 768 * 8 * 1024));
  EXPECT_EQ(derive::parameters_of(model).total - parameters,
            48 * (2 * 2048 * 1024 - std::int64_t{128} * 3 * 768 * 1024));
}

}  // namespace published_test
}  // namespace weft::rules
