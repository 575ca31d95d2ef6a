#include "weft/derive/derived.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft::derive {

using namespace config;
namespace derived_test {

ModelConfig qwen3_30b() {
  ModelConfig model;
  model.num_layers = 48;
  model.hidden_size = 2048;
  model.ffn_hidden_size = 6144;
  model.num_attention_heads = 32;
  model.num_query_groups = 4;
  model.kv_channels = 128;
  model.qk_layernorm = QkNorm::Head;
  model.seq_length = 4096;
  model.vocab_size = 151936;
  model.num_moe_experts = 128;
  model.moe_ffn_hidden_size = 768;
  model.moe_router_topk = 8;
  return model;
}

ModelConfig qwen3_235b() {
  ModelConfig model = qwen3_30b();
  model.num_layers = 94;
  model.hidden_size = 4096;
  model.ffn_hidden_size = 12288;
  model.num_attention_heads = 64;
  model.moe_ffn_hidden_size = 1536;
  return model;
}

TEST(Derived, FlopsPerTokenOfKnownModels) {
  EXPECT_NEAR(flops_per_token(qwen3_30b()) / 1e9, 23.006, 0.0005);
  EXPECT_NEAR(flops_per_token(qwen3_235b()) / 1e9, 148.035, 0.0005);
}

TEST(Derived, DenseLayersCountTheirOwnWidth) {
  ModelConfig model = qwen3_30b();
  const double all_moe = flops_per_token(model);
  model.moe_layer_freq.assign(48, 1);
  model.moe_layer_freq[0] = 0;
  // A layer trades 8 experts of 768 for 6144 dense channels: equally many.
  EXPECT_DOUBLE_EQ(flops_per_token(model), all_moe);
  model.ffn_hidden_size = 6145;
  EXPECT_DOUBLE_EQ(flops_per_token(model), all_moe + 6.0 * 3 * 2048);
}

TEST(Derived, ParametersOfKnownModels) {
  const ParameterCount small = parameters_of(qwen3_30b());
  EXPECT_EQ(small.total, 30532122624);
  EXPECT_NEAR(static_cast<double>(small.active) / 1e9, 3.35, 0.01);
  const ParameterCount large = parameters_of(qwen3_235b());
  EXPECT_EQ(large.total, 235093634560);
  EXPECT_NEAR(static_cast<double>(large.active) / 1e9, 22.2, 0.05);
  EXPECT_GE(rough_parameters(qwen3_30b()), static_cast<double>(small.total));
}

TEST(Derived, TiedEmbeddingsAreCountedOnce) {
  ModelConfig model = qwen3_30b();
  const std::int64_t untied = parameters_of(model).total;
  model.share_embeddings_and_output_weights = true;
  EXPECT_EQ(untied - parameters_of(model).total, 151936 * 2048);
}

TEST(Derived, MoeLayersByPeriodOrByList) {
  ModelConfig model;
  model.num_layers = 4;
  EXPECT_FALSE(model.is_moe_layer(0)) << "no experts";
  model.num_moe_experts = 4;
  EXPECT_TRUE(model.is_moe_layer(3));
  model.moe_layer_freq = {2};
  EXPECT_TRUE(model.is_moe_layer(0));
  EXPECT_FALSE(model.is_moe_layer(1));
  EXPECT_TRUE(model.is_moe_layer(2));
  model.moe_layer_freq = {0, 1, 1, 0};
  EXPECT_FALSE(model.is_moe_layer(0));
  EXPECT_TRUE(model.is_moe_layer(1));
  EXPECT_FALSE(model.is_moe_layer(3));
}

TEST(Derived, WorldIsTheFewestRanksUnlessGiven) {
  Config config;
  config.model.tensor_model_parallel_size = 2;
  config.model.expert_model_parallel_size = 4;
  config.model.expert_tensor_parallel_size = 1;
  config.model.pipeline_model_parallel_size = 2;
  config.model.num_moe_experts = 8;
  EXPECT_EQ(layout_of(config).world, 8);
  EXPECT_EQ(layout_of(config).num_experts, 8);
  config.runtime.world_size = 16;
  EXPECT_EQ(layout_of(config).world, 16);
  config.model.expert_tensor_parallel_size = std::nullopt;
  EXPECT_EQ(layout_of(config).etp, 1) << "experts spread over ranks are whole";
  config.model.expert_model_parallel_size = 1;
  EXPECT_EQ(layout_of(config).etp, 2) << "else they are cut as dense layers are";
}

TEST(Derived, MicroBatchesDivideTheGlobalBatch) {
  Config config;
  config.train.global_batch_size = 24;
  config.train.micro_batch_size = 2;
  EXPECT_EQ(micro_batches(config.train, 4), 3);
  EXPECT_THROW(micro_batches(config.train, 5), base::InternalError);
  EXPECT_EQ(tokens_per_step(config), 24 * 64);
}

}  // namespace derived_test
}  // namespace weft::derive
