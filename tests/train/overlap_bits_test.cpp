// For one layout, no order changes a bit: overlap, delayed weight gradients, and exchanges between
// stages.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "tests/train/train_support.h"
#include "weft/derive/derived.h"
#include "weft/derive/pipeline.h"
#include "weft/schedule/passes/interleave.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/text/text.h"

namespace weft::train {
namespace overlap_bits_test {

struct Order {
  const char* name;
  bool overlap = false, delay = false, early = false, experts_wgrad = false;
};

constexpr Order kOrders[] = {
    {.name = "overlap", .overlap = true},
    {.name = "overlap and delay", .overlap = true, .delay = true},
    {.name = "overlap, delay and early release", .overlap = true, .delay = true, .early = true},
    {.name = "experts' weight gradients under dispatch", .experts_wgrad = true},
};

config::Config with_order(config::Config config, const Order& order) {
  config.comm_overlap.overlap_moe_expert_parallel_comm = order.overlap;
  config.comm_overlap.delay_wgrad_compute = order.delay;
  config.model.ep_overlap_early_attn_memory_release = order.early;
  config.model.overlap_dispatch_backward_with_experts_wgrad = order.experts_wgrad;
  return config;
}

// Stages exchange under compute, or at fixed points.
config::Config with_exchange(config::Config config, bool overlapped) {
  config.comm_overlap.overlap_p2p_comm = overlapped;
  config.comm_overlap.batch_p2p_comm = !overlapped;
  return config;
}

struct BitsCase {
  int pp = 1, vpp = 1, micro_batches = 2;
  bool narrow = false;  // attention outweighs the experts: dispatches travel beside it
};

config::Config config_of(const BitsCase& bits) {
  config::Config config =
      with_layout(deep_config(), {.world = 2 * bits.pp, .ep = 2, .pp = bits.pp, .vpp = bits.vpp});
  config.train.global_batch_size = 2 * bits.micro_batches;
  config.model.share_embeddings_and_output_weights = true;
  if (bits.narrow) config.model.moe_ffn_hidden_size = 2;
  return config;
}

// Fewer micro-batches than stages, equally many, and more: warm-up, steady turns and an end.
std::vector<BitsCase> bits_cases() {
  std::vector<BitsCase> cases{{.micro_batches = 2},
                              {.micro_batches = 4},
                              {.pp = 2, .micro_batches = 2},
                              {.pp = 2, .micro_batches = 4},
                              {.pp = 2, .vpp = 2, .micro_batches = 2},
                              {.pp = 2, .vpp = 2, .micro_batches = 4},
                              {.pp = 4, .micro_batches = 2},
                              {.pp = 4, .micro_batches = 4},
                              {.pp = 4, .micro_batches = 6},
                              {.pp = 4, .vpp = 2, .micro_batches = 4},
                              {.pp = 4, .vpp = 2, .micro_batches = 8},
                              {.micro_batches = 4, .narrow = true},
                              {.pp = 2, .vpp = 2, .micro_batches = 4, .narrow = true}};
  if (!soaks()) return cases;
  const std::vector<BitsCase> longer{{.micro_batches = 8},
                                     {.pp = 2, .micro_batches = 8},
                                     {.pp = 2, .vpp = 2, .micro_batches = 8},
                                     {.pp = 4, .micro_batches = 8}};
  cases.insert(cases.end(), longer.begin(), longer.end());
  return cases;
}

// One order of one case, with one way in which stages exchange.
struct OrderedCase {
  BitsCase bits;
  Order order;
  bool p2p = false;
};

std::vector<OrderedCase> ordered_cases() {
  std::vector<OrderedCase> all;
  for (const BitsCase& bits : bits_cases()) {
    for (const bool p2p : {true, false}) {
      if (p2p && bits.pp == 1) continue;
      const bool is_default = p2p == derive::overlaps_p2p(config_of(bits));
      if (!is_default && bits.pp > 1) all.push_back({bits, {.name = "plain"}, p2p});
      for (const Order& order : kOrders) all.push_back({bits, order, p2p});
    }
  }
  return all;
}

class OverlapBits : public ::testing::TestWithParam<OrderedCase> {};

TEST_P(OverlapBits, AreThoseOfThePlainOrder) {
  const auto& [bits, order, p2p] = GetParam();
  const config::Config plain = config_of(bits);
  constexpr int kSteps = 3;  // memory is planned anew after the first and the second
  expect_same_bits(trained_once(plain, kSteps),
                   train_some(with_exchange(with_order(plain, order), p2p), kSteps));
}

std::string name_of_ordered(const ::testing::TestParamInfo<OrderedCase>& info) {
  const BitsCase& bits = info.param.bits;
  std::string name = fmt::format("Pp{}Vpp{}MicroBatches{}{}_{}_{}",
                                 bits.pp,
                                 bits.vpp,
                                 bits.micro_batches,
                                 bits.narrow ? "Narrow" : "",
                                 info.param.p2p ? "P2pOverlap" : "P2pBatch",
                                 info.param.order.name);
  std::erase_if(name, [](unsigned char c) { return c != '_' && std::isalnum(c) == 0; });
  return name;
}

INSTANTIATE_TEST_SUITE_P(Orders,
                         OverlapBits,
                         ::testing::ValuesIn(third_or_all(ordered_cases())),
                         name_of_ordered);

TEST(OverlapBits, NarrowExpertsHaveAnotherOrder) {
  EXPECT_EQ(schedule::dispatch_beside(config_of({}).model), schedule::DispatchBeside::Experts);
  EXPECT_EQ(schedule::dispatch_beside(config_of({.narrow = true}).model),
            schedule::DispatchBeside::Attention);
}

TEST(OverlapBits, TheOrdersAreNotTheSame) {
  const auto text_of = [](const config::Config& config) {
    const grid::Grid grid(derive::layout_of(config));
    return schedule::print(schedule::plan_step(config, grid).front().training);
  };
  const config::Config plain = config_of({.pp = 2, .vpp = 2, .micro_batches = 4});
  std::set<std::string> texts{text_of(plain)};
  for (const Order& order : kOrders) texts.insert(text_of(with_order(plain, order)));
  EXPECT_EQ(texts.size(), 1 + std::size(kOrders));
}

// Messages arrive with random delays of up to a few nodes.
TEST(OverlapBits, RandomDelaysGiveTheSameBits) {
  for (const BitsCase& bits : {BitsCase{.micro_batches = 4, .narrow = true},
                               BitsCase{.pp = 2, .vpp = 2, .micro_batches = 4}}) {
    const config::Config plain = config_of(bits);
    const std::int64_t kSteps = few_or_many(3, 5);
    const Outcome expected = train_some(plain, kSteps);
    for (const Order& order : kOrders) {
      for (int seed = 1; seed <= few_or_many(1, 2); ++seed) {
        SCOPED_TRACE(fmt::format("{}, pp {}, seed {}", order.name, bits.pp, seed));
        config::Config config = with_order(plain, order);
        config.fabric.jitter_us = 300;
        config.fabric.seed = seed;
        expect_same_bits(expected, train_some(config, kSteps));
      }
    }
  }
}

// Groups larger than the pipeline leave many sends in flight for long.
TEST(OverlapBits, LargeGroupsOfMicroBatchesGiveTheSameBits) {
  config::Config plain = config_of({.pp = 2, .vpp = 2, .micro_batches = 8});
  const Outcome expected = train_some(plain, 3);
  for (const int group : {4, 8}) {
    plain.model.microbatch_group_size_per_vp_stage = group;
    for (const Order& order : kOrders) {
      if (!soaks() && order.delay != (group == 4)) continue;  // every order once
      SCOPED_TRACE(fmt::format("{}, groups of {}", order.name, group));
      expect_same_bits(expected, train_some(with_order(plain, order), 3));
    }
  }
}

TEST(OverlapBits, UnevenStagesGiveTheSameBits) {
  for (const char* stages : {"E|ttt||tttttL", "Etttt|t|ttt|L"}) {
    config::Config plain = config_of({.pp = 4, .micro_batches = 4});
    plain.model.pipeline_model_parallel_layout = stages;
    const Outcome expected = train_some(plain, 3);
    for (const Order& order : kOrders) {
      SCOPED_TRACE(fmt::format("{}, {}", order.name, stages));
      expect_same_bits(expected, train_some(with_order(plain, order), 3));
    }
  }
}

}  // namespace overlap_bits_test
}  // namespace weft::train
