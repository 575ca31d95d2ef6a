#include "weft/schedule/passes/offload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/schedule/dependencies.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/memory/offload_share.h"
#include "weft/schedule/passes/returns_ahead.h"
#include "weft/schedule/text/offload_text.h"
#include "weft/schedule/text/text.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace offload_test {

Detail offloading(double share) {
  Detail detail{.split = {Piece::Attention, Piece::Mlp, Piece::Experts}, .recomputed = {}};
  for (const PieceName& name : {PieceName{Piece::Attention, Part::Norm},
                                PieceName{Piece::Attention, Part::Qkv},
                                PieceName{Piece::Attention, Part::Core},
                                PieceName{Piece::Attention, Part::Add},
                                PieceName{Piece::Merge},
                                PieceName{Piece::Mlp, Part::Add},
                                PieceName{Piece::Experts, Part::Arrange},
                                PieceName{Piece::Experts, Part::Fc1}}) {
    detail.offloaded.push_back({.name = name, .share = share});
  }
  return detail;
}

// Layers that offload attention.
std::set<int> layers_out(const Graph& graph) {
  std::set<int> layers;
  for (const Entry& entry : graph.entries) {
    const Node& node = entry.node;
    if (node.direction == Direction::O && node.part == Part::Core) layers.insert(node.layer);
  }
  return layers;
}

TEST(Offload, EveryOrderWithItIsRightAndParsesBack) {
  int copies = 0;
  for (PlanCase c : some_cases(7)) {
    c.detail = offloading(c.micro_batches % 2 == 0 ? 1 : 0.5);
    const std::vector<RankPlan> plans = plans_of(c);
    EXPECT_EQ(verify_plan(plans), std::vector<std::string>()) << name(c);
    const Graph& graph = plans.front().training;
    EXPECT_EQ(print(parse_graph(print(graph))), print(graph)) << name(c);
    for (const Entry& entry : graph.entries) {
      const Direction direction = entry.node.direction;
      EXPECT_EQ(entry.lane == Lane::Copy, direction == Direction::O) << print(entry.node);
      EXPECT_EQ(entry.lane == Lane::CopyIn, direction == Direction::I) << print(entry.node);
      copies += is_copy(entry.lane) ? 1 : 0;
    }
  }
  EXPECT_GT(copies, 500);
}

TEST(Offload, RunsUnderTheComputeOfTheNextLayerAndOfTheOneBefore) {
  const RankPlan plan =
      plans_of({.layers = "mmmm", .micro_batches = 1, .detail = offloading(1)})[0];
  const Graph& graph = plan.training;
  EXPECT_EQ(layers_out(graph), (std::set{0, 1, 2}));  // the last layer would return at once
  EXPECT_TRUE(run_together(graph, "0O0.attention.qkv", "0F0.attention.core"));
  EXPECT_TRUE(run_together(graph, "0O0.attention.qkv", "0F0.merge"));
  // When the next layer needs memory for its output, the copy has ended.
  EXPECT_FALSE(run_together(graph, "0O0.attention.qkv", "1F0.attention.qkv"));
  EXPECT_FALSE(run_together(graph, "2O0.experts.fc1", "3F0.experts.fc1"));
  // Returns one layer ahead.
  EXPECT_TRUE(run_together(graph, "1I0.attention.qkv", "2D0.attention.qkv"));
  EXPECT_TRUE(run_together(graph, "1I0.attention.qkv", "1D0.experts.fc1"));
  EXPECT_FALSE(run_together(graph, "1I0.attention.qkv", "1D0.attention.core"));
  EXPECT_LT(find(graph, "3D0.attention.proj"), find(graph, "1I0.attention.qkv"));
  // A layer's input is the output of the layer before it.
  EXPECT_TRUE(run_together(graph, "0O0.merge", "1F0.attention.norm"));
  EXPECT_FALSE(run_together(graph, "0I0.merge", "1D0.attention.norm"));
}

// Maximum kept bytes beside the nodes of each kind.
using MostBeside = std::map<std::tuple<Piece, Part, Direction>, std::int64_t>;
MostBeside most_beside(const Graph& graph, const Anatomy& anatomy, const Load& load) {
  const std::vector<std::int64_t> kept =
      kept_after_each(graph, anatomy, [&](const Node&) { return load; });
  MostBeside most;
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    const Node& node = graph.entries[i].node;
    std::int64_t& known = most[{node.piece, node.part, node.direction}];
    known = std::max({known, kept[i], i == 0 ? 0 : kept[i - 1]});
  }
  return most;
}

// Order in which every return is just before the first gradient that waits for it.
NamedEntries with_late_returns(const RankPlan& plan) {
  NamedEntries late;
  std::set<Node> come;
  for (const NamedEntry& entry : named_entries(plan.training)) {
    if (entry.node.direction == Direction::I) continue;
    for (const Node& need : required(plan.anatomy, entry.node, 1, StepKind::Training)) {
      const bool is_new = need.direction == Direction::I && come.insert(need).second;
      if (is_new) late.push_back({.node = need, .waits = {}});
    }
    late.push_back({.node = entry.node, .waits = {}});
  }
  return late;
}

TEST(Offload, ComesBackAsEarlyAsMemoryAllows) {
  const Load load{.tokens = 64, .rows = 128};
  const RankPlan plan =
      plans_of({.layers = "mmmmmmmm", .micro_batches = 1, .detail = offloading(1)})[0];
  const NamedEntries late = with_late_returns(plan);
  const Graph after = write(late, plan.anatomy, 1);
  const Graph before = write(bring_ahead(late, plan.anatomy, 1, load), plan.anatomy, 1);
  EXPECT_EQ(sentences(verify(before, plan.anatomy, 1, StepKind::Training)),
            std::vector<std::string>());
  // After the first layers of the backward, memory allows several returns.
  EXPECT_GT(find(after, "1I0.experts.fc1"), find(after, "2D0.attention.norm"));
  EXPECT_LT(find(before, "1I0.experts.fc1"), find(before, "2D0.combine"));
  const MostBeside most = most_beside(after, plan.anatomy, load);
  for (const auto& [kind, bytes] : most_beside(before, plan.anatomy, load)) {
    if (std::get<Direction>(kind) == Direction::I) continue;
    EXPECT_LE(bytes, most.at(kind)) << word(std::get<Piece>(kind));
  }
}

TEST(Offload, AShareIsSpreadOverTheLayers) {
  const auto layers = [](double share) {
    return layers_out(
        plans_of({.layers = "mmmmmmmmm", .micro_batches = 1, .detail = offloading(share)})[0]
            .training);
  };
  EXPECT_EQ(layers(0.5), (std::set{1, 3, 5, 7}));
  EXPECT_EQ(layers(0.25), (std::set{3, 7}));
  EXPECT_EQ(layers(0), std::set<int>());
}

TEST(Offload, WhatIsRecomputedIsNotOffloaded) {
  Detail detail = offloading(1);
  detail.recomputed = {{Piece::Attention, Part::Core}};
  const Graph graph = plans_of({.layers = "mmm", .micro_batches = 1, .detail = detail})[0].training;
  EXPECT_EQ(layers_out(graph), std::set<int>());
  // It reads offloaded data.
  EXPECT_FALSE(run_together(graph, "0I0.attention.qkv", "0R0.attention.core"));
}

TEST(Offload, AGradientThatDoesNotWaitIsFound) {
  const RankPlan plan = plans_of({.layers = "mmm", .micro_batches = 1, .detail = offloading(1)})[0];
  Graph graph = plan.training;
  for (Entry& entry : graph.entries) {
    std::erase_if(entry.waits, [&](int wait) {
      return print(graph.entries[static_cast<std::size_t>(wait)].node) == "0I0.experts.fc1";
    });
  }
  EXPECT_TRUE(contains(verify(graph, plan.anatomy, 1, StepKind::Training),
                       "0D0.experts.act may start before 0I0.experts.fc1 is over"));
}

TEST(Offload, KeepsLess) {
  const Load load{.tokens = 64, .rows = 128};
  const auto mark = [&](const Detail& detail) {
    const RankPlan plan = plans_of({.layers = "mmmmmmmm", .micro_batches = 1, .detail = detail})[0];
    return activation_mark(plan.training, plan.anatomy, load);
  };
  const std::int64_t all = mark(offloading(1)), half = mark(offloading(0.5)),
                     none = mark(offloading(0));
  EXPECT_LT(all, half);
  EXPECT_LT(half, none);
}

// With grouped recomputation, only the first input is kept, and can be offloaded.
TEST(OffloadText, CountsTheLayersThatReallyGo) {
  config::Config config;
  config.model.num_layers = 4;
  config.model.recompute_granularity = config::RecomputeGranularity::Full;
  config.model.recompute_method = config::RecomputeMethod::Uniform;
  config.model.fine_grained_activation_offloading = true;
  config.model.offload_modules = {config::OffloadModule::AttnNorm};
  const auto text_of_groups = [&](std::int64_t layers) {
    config.model.recompute_num_layers = layers;
    return offload_text(config);
  };
  EXPECT_NE(text_of_groups(1).find("attn_norm in 3 of 4 layers"), std::string::npos);
  EXPECT_NE(text_of_groups(2).find("attn_norm in 1 of 4 layers"), std::string::npos)
      << text_of_groups(2);
}

// Width of Qwen3-30B-A3B, 4 x 4096 tokens.
config::Config wide_config() {
  config::Config config;
  config::ModelConfig& model = config.model;
  model.num_layers = 12;
  model.hidden_size = 2048;
  model.num_attention_heads = 32;
  model.num_query_groups = 4;
  model.kv_channels = 128;
  model.seq_length = 4096;
  model.num_moe_experts = 128;
  model.moe_router_topk = 8;
  model.moe_ffn_hidden_size = 768;
  model.moe_layer_freq = {1};
  model.params_dtype = base::DType::BF16;
  config.train.micro_batch_size = 4;
  model.fine_grained_activation_offloading = true;
  model.offload_modules = {config::OffloadModule::ExpertFc1, config::OffloadModule::MoeAct};
  return config;
}

// The experts' rows use the whole link: no share is left for later modules.
TEST(OffloadText, SaysWhereTheLinkIsFull) {
  config::Config config = wide_config();
  EXPECT_EQ(offload_text(config), "expert_fc1 in 11 of 12 layers, moe_act in 11 of 12 layers");
  config.hardware.gpu = config::Gpu::H100;
  const std::vector<OffloadCount> counts = offload_counts(config);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_GT(counts[0].offloaded, 0);
  EXPECT_LT(counts[0].offloaded, 11);
  EXPECT_EQ(counts[1].offloaded, 0);
  EXPECT_TRUE(counts[1].link_is_full);
  const std::string text = offload_text(config);
  EXPECT_TRUE(text.ends_with("moe_act in 0 of 12 layers (the link is full)")) << text;
}

// By hand: bytes that the link carries while a layer computes, divided by the layer's bytes.
TEST(OffloadShare, IsWhatTheLinkCarries) {
  config::Config config = wide_config();
  config::ModelConfig& model = config.model;
  const double tokens = 4 * 4096;
  EXPECT_EQ(offloaded_modules(config)[0].share, 1);  // unknown link
  config.hardware.gpu = config::Gpu::H100;
  const double products =
      2048.0 * (4096 + 2 * 512) + 4096.0 * 2048 + 4096.0 * 4096 + 8.0 * 3 * 2048 * 768;
  const double carried = 2 * products * tokens / (989e12 * 0.5) * 64e9 * 0.75;
  const double rows = tokens * 8 * 2048 * 2;
  const std::vector<OffloadedModule> modules = offloaded_modules(config);
  // Twelve layers compute; the last one has no output to offload.
  EXPECT_NEAR(modules[0].share, 12 * carried / (11 * rows), 1e-6);
  EXPECT_NEAR(modules[1].share, 0, 1e-9);  // no share is left for the second
  config.runtime.offload_layers_share = 0.75;
  EXPECT_EQ(offloaded_modules(config)[1].share, 0.75);
  model.activation_offload_fraction = 0.5;
  EXPECT_EQ(offloaded_modules(config)[1].share, 0.5);
}

// Bytes that a recomputed module does not send are available to the next.
TEST(OffloadShare, SpendsNothingOnWhatIsRecomputed) {
  config::Config config = wide_config();
  config.hardware.gpu = config::Gpu::H100;
  config.model.offload_modules = {config::OffloadModule::MoeAct};
  const double alone = offloaded_modules(config)[0].share;
  EXPECT_GT(alone, 0.1);
  EXPECT_LT(alone, 1);
  config.model.recompute_granularity = config::RecomputeGranularity::Selective;
  config.model.recompute_modules = {{config::RecomputeModule::Layernorm}};
  config.model.offload_modules = {config::OffloadModule::QkvLinear, config::OffloadModule::MoeAct};
  EXPECT_EQ(offloaded_modules(config)[1].share, alone);
  config.model.recompute_modules = {{config::RecomputeModule::CoreAttn}};
  EXPECT_LT(offloaded_modules(config)[1].share, alone);
}

}  // namespace offload_test
}  // namespace weft::schedule
