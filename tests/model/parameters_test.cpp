#include "weft/model/parameters.h"

#include <gtest/gtest.h>

#include "tests/devices/devices_support.h"
#include "tests/soak.h"
#include "weft/base/random.h"
#include "weft/tensor/transfer.h"

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
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  const Parameters parameters(pool, *stream, small(), holding_of(small(), 0), {});
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
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  Parameters whole(pool, *stream, config, holding_of(config, 0), {});
  whole.initialise(*stream, 7);
  config.expert_model_parallel_size = 2;
  Parameters second(pool, *stream, config, holding_of(config, 0), {.ep = 1});
  second.initialise(*stream, 7);
  const Parameter& all = whole.find("layers.1.experts.fc1.weight");
  const Parameter& half = second.find("layers.1.experts.fc1.weight");
  const std::int64_t begin = half.weight.elements();
  ASSERT_EQ(tensor::runs_of(half.spec.slice).front().global, begin);
  const Tensor same = all.weight.range(begin, {half.weight.elements()});
  EXPECT_EQ(tensor::read<float>(*stream, half.weight), tensor::read<float>(*stream, same));
  const Tensor& norm = whole.find("layers.0.mlp.norm.weight").weight;
  EXPECT_EQ(tensor::read<float>(*stream, norm)[3], 1.0f);
}

// Two tables that exceed the host's batch, with a size that is no round number.
TEST(Parameters, StartTheSameOnAnyNumberOfThreads) {
  for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
    if (!soaks() && precision == base::DType::F32) continue;  // is rounded nowhere
    config::ModelConfig config = small();
    config.vocab_size = 9'000'001 / config.hidden_size;
    config.params_dtype = precision;
    devices::Workbench bench;
    auto& [device, pool, stream] = bench;
    Parameters parameters(pool, *stream, config, holding_of(config, 0), {});
    parameters.initialise(*stream, 7);
    const Tensor& table = parameters.find("embedding.weight").weight;
    const std::vector<float> alone = tensor::read_floats(*stream, table);
    std::vector<float> drawn(alone.size());
    base::normals(base::combine(7, base::hash("embedding.weight")), 0, drawn);
    const double deviation = parameters.find("embedding.weight").spec.init_deviation;
    for (float& value : drawn) value *= static_cast<float>(deviation);
    if (precision == tensor::DType::BF16) {
      for (float& value : drawn) value = float(tensor::BFloat16(value));
    }
    EXPECT_EQ(alone, drawn);
    parameters.initialise(*stream, 8);
    parameters.initialise(*stream, 7, 5);
    EXPECT_EQ(tensor::read_floats(*stream, table), alone);
  }
}

TEST(Parameters, SharedExpertsAreDenseAndOfMoeLayersAlone) {
  config::ModelConfig config = small();
  config.moe_shared_expert_intermediate_size = 10;
  config.expert_model_parallel_size = 2;
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  const Parameters plain(pool, *stream, config, holding_of(config, 0), {});
  EXPECT_EQ(plain.find("layers.1.shared.fc1.weight").spec.shape, (Shape{20, 8}));
  EXPECT_EQ(plain.find("layers.1.shared.fc2.weight").spec.shape, (Shape{8, 10}));
  EXPECT_EQ(plain.find("layers.1.shared.fc1.weight").spec.home, Home::Dense);
  EXPECT_FALSE(plain.has("layers.1.shared.gate.weight"));
  EXPECT_FALSE(plain.has("layers.0.shared.fc1.weight"));
  config.moe_shared_expert_gate = true;
  const Parameters gated(pool, *stream, config, holding_of(config, 0), {});
  EXPECT_EQ(gated.find("layers.1.shared.gate.weight").spec.shape, (Shape{1, 8}));
}

TEST(Parameters, TiedHeadsHaveAGradientButNoWeight) {
  config::ModelConfig config = small();
  config.share_embeddings_and_output_weights = true;
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  const Parameters parameters(pool, *stream, config, holding_of(config, 0), {});
  EXPECT_THROW(parameters.find("head.weight"), base::InternalError);
  EXPECT_EQ(parameters.tied_head_gradient().shape(), (Shape{16, 8}));
}

TEST(Parameters, ARoutersBiasIsFp32StartsAtZeroAndHasNoGradient) {
  config::ModelConfig config = small();
  config.moe_router_enable_expert_bias = true;
  config.params_dtype = tensor::DType::BF16;
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  Parameters parameters(pool, *stream, config, holding_of(config, 0), {});
  parameters.initialise(*stream, 7);
  const Parameter& bias = parameters.find("layers.1.route.bias");
  EXPECT_EQ(bias.weight.dtype(), tensor::DType::F32);
  EXPECT_EQ(bias.weight.shape(), (Shape{4}));
  EXPECT_FALSE(bias.gradient.defined());
  EXPECT_EQ(tensor::read<float>(*stream, bias.weight), std::vector<float>(4, 0.0f));
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
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  const Parameters first(pool, *stream, config, holding_of(config, 0), {});
  const Parameters middle(pool, *stream, config, holding_of(config, 1), {});
  const Parameters last(pool, *stream, config, holding_of(config, 2), {});
  EXPECT_TRUE(first.has("embedding.weight"));
  EXPECT_TRUE(first.has("layers.0.mlp.fc1.weight"));
  EXPECT_FALSE(first.has("layers.1.experts.fc1.weight"));
  EXPECT_FALSE(first.has("head.weight"));
  EXPECT_EQ(first.buffer(Home::Expert).weights.elements(), 0);
  EXPECT_TRUE(middle.all().empty());
  EXPECT_EQ(middle.buffer(Home::Dense).weights.elements(), 0);
  EXPECT_FALSE(last.has("embedding.weight"));
  EXPECT_EQ(names_of(last).back(), "head.weight");
  const Parameters whole(pool, *stream, config, whole_model(config), {});
  EXPECT_EQ(whole.all().size(), first.all().size() + last.all().size());
}

TEST(Parameters, StagesOfTiedEmbeddingsHaveACopyEach) {
  config::ModelConfig config = small();
  config.share_embeddings_and_output_weights = true;
  config.pipeline_model_parallel_size = 2;
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  Parameters first(pool, *stream, config, holding_of(config, 0), {});
  Parameters last(pool, *stream, config, holding_of(config, 1), {});
  first.initialise(*stream, 3);
  last.initialise(*stream, 3);
  EXPECT_FALSE(first.tied_head_gradient().defined());
  EXPECT_FALSE(last.tied_head_gradient().defined());
  const Tensor& table = first.find("embedding.weight").weight;
  const Tensor& copy = last.find("embedding.weight").weight;
  EXPECT_EQ(tensor::read<float>(*stream, table), tensor::read<float>(*stream, copy));
  // The norm of the whole model counts the table once, on the first stage.
  EXPECT_EQ(first.normed_ranges(Home::Dense, 0).at(0).count,
            first.buffer(Home::Dense).gradients.elements());
  EXPECT_EQ(last.normed_ranges(Home::Dense, 0).at(0).count,
            last.buffer(Home::Dense).gradients.elements() - 16 * 8);
}

// Number of ranks that hold each element of a parameter, by global index.
std::vector<int> holders_of(const config::ModelConfig& config, const std::string& name) {
  std::vector<int> holders;
  const auto tp = static_cast<int>(ranks_of(config, Axis::Tp));
  const auto ep = static_cast<int>(ranks_of(config, Axis::Ep));
  const auto etp = static_cast<int>(ranks_of(config, Axis::Etp));
  for (int i = 0; i < tp * ep * etp; ++i) {
    const AxisRanks ranks{.tp = i % tp, .ep = i / tp % ep, .etp = i / tp / ep};
    for (const ParameterSpec& spec : list_parameters(config, whole_model(config), ranks)) {
      if (spec.name != name) continue;
      holders.resize(static_cast<std::size_t>(spec.global_shape.elements()));
      for (const tensor::Run& run : tensor::runs_of(spec.slice)) {
        for (std::int64_t k = 0; k < run.count; ++k) {
          ++holders[static_cast<std::size_t>(run.global + k)];
        }
      }
    }
  }
  return holders;
}

config::ModelConfig split_config() {
  config::ModelConfig config = small();
  config.num_attention_heads = 4;
  config.num_query_groups = 2;
  config.qk_layernorm = config::QkNorm::Projection;
  config.moe_shared_expert_intermediate_size = 8;
  config.tensor_model_parallel_size = 4;
  config.expert_model_parallel_size = 2;
  config.expert_tensor_parallel_size = 2;
  config.ffn_hidden_size = 12;
  return config;
}

TEST(AxisSplits, EveryElementHasAHolderAndAsManyAsTheAxesSay) {
  const config::ModelConfig config = split_config();
  // Holders among 16 ranks: 16 without splits, 4 with tp, 4 with ep and etp.
  const std::map<std::string, int> expected{{"embedding.weight", 4},
                                            {"layers.0.attention.norm.weight", 16},
                                            {"layers.0.attention.q_norm.weight", 4},
                                            {"layers.0.attention.k_norm.weight", 8},
                                            {"layers.0.attention.proj.weight", 4},
                                            {"layers.0.mlp.fc1.weight", 4},
                                            {"layers.0.mlp.fc2.weight", 4},
                                            {"layers.1.route.router.weight", 16},
                                            {"layers.1.shared.fc1.weight", 4},
                                            {"layers.1.experts.fc1.weight", 4},
                                            {"layers.1.experts.fc2.weight", 4},
                                            {"head.weight", 4}};
  for (const auto& [name, count] : expected) {
    for (const int holders : holders_of(config, name)) ASSERT_EQ(holders, count) << name;
  }
}

TEST(AxisSplits, KeysAndValuesHaveCopiesWhereRanksAreMoreThanTheirHeads) {
  const config::ModelConfig config = split_config();
  const std::vector<int> holders = holders_of(config, "layers.0.attention.qkv.weight");
  const auto q = static_cast<std::size_t>(config.query_width() * config.hidden_size);
  for (std::size_t i = 0; i < holders.size(); ++i) ASSERT_EQ(holders[i], i < q ? 4 : 8) << i;
}

TEST(AxisSplits, GateAndUpAreDividedEachOnItsOwn) {
  const config::ModelConfig config = split_config();
  for (const ParameterSpec& spec :
       list_parameters(config, whole_model(config), {.tp = 1, .ep = 1, .etp = 1})) {
    if (spec.name == "layers.0.mlp.fc1.weight") {
      EXPECT_EQ(spec.shape, (Shape{6, 8}));
      EXPECT_EQ(spec.slice.dims[0], (std::vector<tensor::Range>{{3, 3}, {15, 3}}));
    }
    if (spec.name == "layers.1.experts.fc2.weight") {
      EXPECT_EQ(spec.shape, (Shape{2, 8, 3}));
      EXPECT_EQ(spec.slice.dims[0], (std::vector<tensor::Range>{{2, 2}}));
      EXPECT_EQ(spec.slice.dims[2], (std::vector<tensor::Range>{{3, 3}}));
    }
  }
}

TEST(AxisSplits, WholeLatentQueriesAreDividedAndWhatIsCompressedIsNot) {
  config::ModelConfig config = split_config();
  config.qk_layernorm = config::QkNorm::None;
  config.multi_latent_attention = true;
  config.kv_lora_rank = 3;
  config.qk_head_dim = 2;
  config.qk_pos_emb_head_dim = 2;
  config.v_head_dim = 2;
  const auto first = static_cast<std::size_t>(4 * (2 + 2) * 8);
  for (const bool compressed : {false, true}) {
    if (compressed) config.q_lora_rank = 5;
    const std::vector<int> holders = holders_of(config, "layers.0.attention.down.weight");
    EXPECT_EQ(holders.front(), compressed ? 16 : 4);
    EXPECT_EQ(holders.back(), 16);
    if (!compressed) {
      EXPECT_EQ(holders[first - 1], 4);
      EXPECT_EQ(holders[first], 16);
    }
  }
}

TEST(AxisSplits, WeightsStartAsTheirGlobalElementsSayWhateverSplitsThem) {
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  const config::ModelConfig config = split_config();
  config::ModelConfig alone = config;
  alone.tensor_model_parallel_size = alone.expert_model_parallel_size = 1;
  alone.expert_tensor_parallel_size = 1;
  Parameters whole(pool, *stream, alone, holding_of(alone, 0), {});
  Parameters part(pool, *stream, config, holding_of(config, 0), {.tp = 3, .ep = 1, .etp = 1});
  whole.initialise(*stream, 7);
  part.initialise(*stream, 7);
  for (const Parameter& parameter : part.all()) {
    const std::vector<float> all =
        tensor::read<float>(*stream, whole.find(parameter.spec.name).weight);
    const std::vector<float> own = tensor::read<float>(*stream, parameter.weight);
    for (const tensor::Run& run : tensor::runs_of(parameter.spec.slice)) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        ASSERT_EQ(own[static_cast<std::size_t>(run.local + i)],
                  all[static_cast<std::size_t>(run.global + i)])
            << parameter.spec.name;
      }
    }
  }
}

TEST(Parameters, ARangeOfTheBuffersNamesWhatLiesInIt) {
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  const Parameters parameters(pool,
                              *stream,
                              small(),
                              holding_of(small(), 0),
                              {},
                              {.dense = {.shards = 3}});
  const BufferLayout& layout = parameters.buffer(Home::Dense).layout;
  std::map<std::string, std::int64_t> seen;
  for (const Bucket& bucket : layout.buckets) {
    for (std::int64_t rank = 0; rank < layout.shards; ++rank) {
      const tensor::Range share = layout.shard(bucket, rank);
      for (const ParameterRange& found : parameters.in_range(Home::Dense, share)) {
        const Parameter& parameter = *found.parameter;
        EXPECT_EQ(parameter.offset + found.elements.begin, share.begin + found.at);
        EXPECT_EQ(seen[parameter.spec.name], found.elements.begin) << "shares follow each other";
        seen[parameter.spec.name] = found.elements.end();
      }
    }
  }
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.spec.home != Home::Dense) continue;
    EXPECT_EQ(seen[parameter.spec.name], parameter.weight.elements()) << parameter.spec.name;
  }
}

}  // namespace parameters_test
}  // namespace weft::model
