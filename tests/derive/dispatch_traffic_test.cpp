// Bytes that leave a rank with Megatron's dispatchers.
#include "weft/derive/dispatch_traffic.h"

#include <gtest/gtest.h>

namespace weft::derive {

using namespace config;
namespace dispatch_traffic_test {

constexpr double kMebi = 1024.0 * 1024;

ModelConfig large(Dispatcher dispatcher, std::optional<FlexBackend> backend = std::nullopt) {
  ModelConfig model;
  model.hidden_size = 7168;
  model.num_moe_experts = 256;
  model.moe_router_topk = 8;
  model.params_dtype = base::DType::BF16;
  model.moe_token_dispatcher_type = dispatcher;
  model.moe_flex_dispatcher_backend = backend;
  return model;
}

// MiB of payload per transfer: half of dispatch plus combine.
struct Mebibytes {
  double all = 0, between = 0;
};

Mebibytes one_transfer(const ModelConfig& model, std::int64_t ranks, bool is_uneven = false) {
  const DispatchTraffic sent = expected_traffic(
      model,
      {.ranks = ranks, .ranks_per_node = 8, .tokens = 4096, .is_uneven = is_uneven});
  return {.all = (sent.inside.payload + sent.between.payload) / 2 / kMebi,
          .between = sent.between.payload / 2 / kMebi};
}

struct Row {
  std::int64_t ranks;
  double alltoall, deepep, alltoall_between, hybridep_between;
};

TEST(DispatchTraffic, IsTheTableOfTheReferenceSystem) {
  for (const Row& row : {Row{8, 392, 259.4, 0, 0},
                         Row{16, 420, 342.5, 224, 55.8},
                         Row{32, 434, 394.2, 336, 151.8},
                         Row{64, 441, 423.1, 392, 259.4}}) {
    const Mebibytes alltoall = one_transfer(large(Dispatcher::AllToAll), row.ranks);
    EXPECT_NEAR(alltoall.all, row.alltoall, 0.05);
    EXPECT_NEAR(alltoall.between, row.alltoall_between, 0.05);
    const ModelConfig deepep = large(Dispatcher::Flex, FlexBackend::DeepEp);
    EXPECT_NEAR(one_transfer(deepep, row.ranks, true).all, row.deepep, 0.05) << "a row a rank";
    EXPECT_NEAR(one_transfer(deepep, row.ranks).between, row.hybridep_between, 0.05);
    const ModelConfig hybridep = large(Dispatcher::Flex, FlexBackend::HybridEp);
    EXPECT_NEAR(one_transfer(hybridep, row.ranks).between, row.hybridep_between, 0.05);
  }
}

// Two ranks share an expert: a token goes to both.
TEST(DispatchTraffic, OfSharedExpertsGoesToAllThatShareThem) {
  const auto rows = [](Dispatcher dispatcher, std::int64_t shards) {
    ModelConfig model = large(dispatcher, FlexBackend::DeepEp);
    model.expert_tensor_parallel_size = shards;
    const DispatchTraffic sent =
        expected_traffic(model, {.ranks = 8 * shards, .ranks_per_node = 8 * shards, .tokens = 100});
    const auto ranks = static_cast<double>(8 * shards);
    return sent.inside.rows / (ranks - 1) * ranks;  // including rows to itself
  };
  EXPECT_DOUBLE_EQ(rows(Dispatcher::AllToAll, 2), 2 * rows(Dispatcher::AllToAll, 1));
  EXPECT_DOUBLE_EQ(rows(Dispatcher::Flex, 2), 2 * rows(Dispatcher::Flex, 1));
}

TEST(DispatchTraffic, OfAllGatherIsEveryTokenToEveryRankAndBackInFp32) {
  const DispatchTraffic sent = expected_traffic(large(Dispatcher::AllGather),
                                                {.ranks = 16, .ranks_per_node = 8, .tokens = 10});
  EXPECT_EQ(sent.inside.rows, 70);
  EXPECT_EQ(sent.between.rows, 80);
  EXPECT_EQ(sent.between.payload, 80 * 7168 * (2 + 4));
  EXPECT_EQ(sent.between.probabilities, 80 * 8 * 4);
  EXPECT_EQ(sent.between.metadata, 80 * 8 * 4 + 8 * 16 * 8);
}

TEST(DispatchTraffic, OfPaddedRowsHasNoCounts) {
  const DispatchShape shape{.ranks = 16, .ranks_per_node = 8, .tokens = 10};
  ModelConfig alltoall = large(Dispatcher::AllToAll), allgather = large(Dispatcher::AllGather);
  EXPECT_EQ(expected_traffic(alltoall, shape).inside.metadata, 7 * 256 * 8);
  for (ModelConfig* model : {&alltoall, &allgather}) {
    model->moe_expert_capacity_factor = 1;
    model->moe_pad_expert_input_to_capacity = true;
  }
  EXPECT_EQ(expected_traffic(alltoall, shape).inside.metadata, 0);
  EXPECT_EQ(expected_traffic(allgather, shape).inside.metadata, 70 * 8 * 4) << "choices alone";
}

// 320 tokens choose each of 256 experts ten times; the capacity is five.
TEST(DispatchTraffic, WithACapacityIsAtMostWhatExpertsTake) {
  const DispatchShape shape{.ranks = 16, .ranks_per_node = 8, .tokens = 320};
  ModelConfig model = large(Dispatcher::AllToAll);
  const double all = expected_traffic(model, shape).inside.rows;
  model.moe_expert_capacity_factor = 2;
  EXPECT_EQ(expected_traffic(model, shape).inside.rows, all);
  model.moe_expert_capacity_factor = 0.5;
  EXPECT_EQ(expected_traffic(model, shape).inside.rows, all / 2);
}

// A rank with two of its seven peers in its machine sends them two sevenths.
TEST(DispatchTraffic, OfOneHopNeedsNoEqualMachines) {
  const ModelConfig deepep = large(Dispatcher::Flex, FlexBackend::DeepEp);
  const DispatchTraffic sent =
      expected_traffic(deepep, {.ranks = 8, .ranks_per_node = 3, .tokens = 100});
  EXPECT_NEAR(sent.inside.rows / 2, sent.between.rows / 5, 1e-9);
}

// DeepEP sends one message per machine, which is forwarded there. Between machines both backends
// send equal rows, counts and all.
TEST(DispatchTraffic, OfDeepEpBetweenMachinesIsThatOfHybridEp) {
  const ModelConfig deepep = large(Dispatcher::Flex, FlexBackend::DeepEp);
  const ModelConfig hybridep = large(Dispatcher::Flex, FlexBackend::HybridEp);
  const DispatchShape shape{.ranks = 32, .ranks_per_node = 8, .tokens = 100};
  ASSERT_TRUE(passes_on(deepep, shape));
  const DispatchTraffic sent = expected_traffic(deepep, shape);
  const DispatchTraffic same = expected_traffic(hybridep, shape);
  EXPECT_EQ(sent.between.bytes(), same.between.bytes());
  EXPECT_EQ(sent.inside.bytes(), same.inside.bytes());
  EXPECT_FALSE(passes_on(deepep, {.ranks = 8, .ranks_per_node = 8}));
  EXPECT_FALSE(passes_on(deepep, {.ranks = 32, .ranks_per_node = 8, .is_uneven = true}));
}

// Ranks of one machine need no middle rank, and machines of one rank forward no rows.
TEST(DispatchTraffic, OfHybridEpInOneHopIsThatOfDeepEp) {
  const ModelConfig deepep = large(Dispatcher::Flex, FlexBackend::DeepEp);
  const ModelConfig hybridep = large(Dispatcher::Flex, FlexBackend::HybridEp);
  const DispatchShape apart{.ranks = 8, .ranks_per_node = 1, .tokens = 100};
  EXPECT_DOUBLE_EQ(expected_traffic(hybridep, apart).between.bytes(),
                   expected_traffic(deepep, apart).between.bytes());
  const DispatchShape together{.ranks = 8, .ranks_per_node = 8, .tokens = 100};
  EXPECT_DOUBLE_EQ(expected_traffic(hybridep, together).inside.rows,
                   expected_traffic(deepep, together).inside.rows);
}

}  // namespace dispatch_traffic_test
}  // namespace weft::derive
