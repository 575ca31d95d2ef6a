#include "weft/model/parameters.h"

#include <gtest/gtest.h>

namespace weft::model {
namespace parameters_test {

config::ModelConfig small() {
  config::ModelConfig config;
  config.num_layers = 2;
  config.moe_layer_freq = {0, 1};
  config.hidden_size = 8;
  config.num_attention_heads = 2;
  config.ffn_hidden_size = 12;
  config.num_moe_experts = 4;
  config.moe_ffn_hidden_size = 6;
  config.vocab_size = 16;
  return config;
}

TEST(Parameters, LieInReverseOrderOfUseWithoutOverlap) {
  tensor::Pool pool;
  const Parameters parameters(pool, small(), holding_of(small(), 0), 0);
  std::map<Home, std::int64_t> end{{Home::Dense, 1 << 30}, {Home::Expert, 1 << 30}};
  for (const Parameter& parameter : parameters.all()) {
    EXPECT_EQ(parameter.offset % 64, 0) << parameter.spec.name;
    EXPECT_LE(parameter.offset + parameter.weight.elements(), end[parameter.spec.home])
        << parameter.spec.name;
    end[parameter.spec.home] = parameter.offset;
  }
  EXPECT_EQ(end[Home::Dense], 0) << "the head comes first";
  const Parameter& embedding = parameters.find("embedding.weight");
  EXPECT_EQ(embedding.offset + embedding.weight.elements(),
            parameters.buffer(Home::Dense).weights.elements());
}

TEST(Parameters, ExpertsStartAsTheirGlobalElementsSay) {
  config::ModelConfig config = small();
  tensor::Pool pool;
  Parameters whole(pool, config, holding_of(config, 0), 0);
  whole.initialise(7);
  config.expert_model_parallel_size = 2;
  Parameters second(pool, config, holding_of(config, 0), 1);
  second.initialise(7);
  const Parameter& all = whole.find("layers.1.experts.fc1.weight");
  const Parameter& half = second.find("layers.1.experts.fc1.weight");
  ASSERT_EQ(half.spec.begin, half.weight.elements());
  for (std::int64_t i = 0; i < half.weight.elements(); ++i) {
    EXPECT_EQ(half.weight.host<float>()[i], all.weight.host<float>()[half.spec.begin + i]);
  }
  EXPECT_EQ(whole.find("layers.0.mlp.norm.weight").weight.host<float>()[3], 1.0f);
}

TEST(Parameters, SharedExpertsAreDenseAndOfMoeLayersAlone) {
  config::ModelConfig config = small();
  config.moe_shared_expert_intermediate_size = 10;
  config.expert_model_parallel_size = 2;
  tensor::Pool pool;
  const Parameters plain(pool, config, holding_of(config, 0), 0);
  EXPECT_EQ(plain.find("layers.1.shared.fc1.weight").spec.shape, (Shape{20, 8}));
  EXPECT_EQ(plain.find("layers.1.shared.fc2.weight").spec.shape, (Shape{8, 10}));
  EXPECT_EQ(plain.find("layers.1.shared.fc1.weight").spec.home, Home::Dense);
  EXPECT_FALSE(plain.has("layers.1.shared.gate.weight"));
  EXPECT_FALSE(plain.has("layers.0.shared.fc1.weight"));
  config.moe_shared_expert_gate = true;
  const Parameters gated(pool, config, holding_of(config, 0), 0);
  EXPECT_EQ(gated.find("layers.1.shared.gate.weight").spec.shape, (Shape{1, 8}));
}

TEST(Parameters, TiedHeadsHaveAGradientButNoWeight) {
  config::ModelConfig config = small();
  config.share_embeddings_and_output_weights = true;
  tensor::Pool pool;
  const Parameters parameters(pool, config, holding_of(config, 0), 0);
  EXPECT_THROW(parameters.find("head.weight"), base::InternalError);
  EXPECT_EQ(parameters.tied_head_gradient().shape(), (Shape{16, 8}));
}

TEST(Parameters, ARoutersBiasIsFp32StartsAtZeroAndHasNoGradient) {
  config::ModelConfig config = small();
  config.moe_router_enable_expert_bias = true;
  config.params_dtype = config::Precision::Bf16;
  tensor::Pool pool;
  Parameters parameters(pool, config, holding_of(config, 0), 0);
  parameters.initialise(7);
  const Parameter& bias = parameters.find("layers.1.route.bias");
  EXPECT_EQ(bias.weight.dtype(), tensor::DType::F32);
  EXPECT_EQ(bias.weight.shape(), (Shape{4}));
  EXPECT_FALSE(bias.gradient.defined());
  for (int e = 0; e < 4; ++e) EXPECT_EQ(bias.weight.host<float>()[e], 0.0f);
  EXPECT_FALSE(parameters.has("layers.0.route.bias")) << "a dense layer";
}

std::vector<std::string> names_of(const Parameters& parameters) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters.all()) names.push_back(parameter.spec.name);
  return names;
}

TEST(Parameters, AStageHasItsOwnAlone) {
  config::ModelConfig config = small();
  config.pipeline_model_parallel_size = 3;
  config.pipeline_model_parallel_layout = "Et||tL";
  tensor::Pool pool;
  const Parameters first(pool, config, holding_of(config, 0), 0);
  const Parameters middle(pool, config, holding_of(config, 1), 0);
  const Parameters last(pool, config, holding_of(config, 2), 0);
  EXPECT_TRUE(first.has("embedding.weight"));
  EXPECT_TRUE(first.has("layers.0.mlp.fc1.weight"));
  EXPECT_FALSE(first.has("layers.1.experts.fc1.weight"));
  EXPECT_FALSE(first.has("head.weight"));
  EXPECT_EQ(first.buffer(Home::Expert).weights.elements(), 0);
  EXPECT_TRUE(middle.all().empty());
  EXPECT_EQ(middle.buffer(Home::Dense).weights.elements(), 0);
  EXPECT_FALSE(last.has("embedding.weight"));
  EXPECT_EQ(names_of(last).back(), "head.weight");
  const Parameters whole(pool, config, whole_model(config), 0);
  EXPECT_EQ(whole.all().size(), first.all().size() + last.all().size());
}

TEST(Parameters, StagesOfTiedEmbeddingsHaveACopyEach) {
  config::ModelConfig config = small();
  config.share_embeddings_and_output_weights = true;
  config.pipeline_model_parallel_size = 2;
  tensor::Pool pool;
  Parameters first(pool, config, holding_of(config, 0), 0);
  Parameters last(pool, config, holding_of(config, 1), 0);
  first.initialise(3);
  last.initialise(3);
  EXPECT_FALSE(first.tied_head_gradient().defined());
  EXPECT_FALSE(last.tied_head_gradient().defined());
  const Tensor& table = first.find("embedding.weight").weight;
  const Tensor& copy = last.find("embedding.weight").weight;
  for (std::int64_t i = 0; i < table.elements(); ++i) {
    EXPECT_EQ(table.host<float>()[i], copy.host<float>()[i]);
  }
  // The norm of the whole model counts the table once, on the first stage.
  EXPECT_EQ(first.normed_gradients(Home::Dense).elements(),
            first.buffer(Home::Dense).gradients.elements());
  EXPECT_EQ(last.normed_gradients(Home::Dense).elements(),
            last.buffer(Home::Dense).gradients.elements() - 16 * 8);
}

}  // namespace parameters_test
}  // namespace weft::model
