#include "weft/measure/bench/dispatch_bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <set>

#include "tests/devices/devices_support.h"
#include "tests/train/train_support.h"
#include "weft/base/text.h"
#include "weft/measure/bench/dispatch_trip.h"
#include "weft/measure/runs/rounds.h"
#include "weft/tensor/transfer.h"

namespace weft::measure {

using namespace train;
namespace dispatch_bench_test {

using derive::DispatchTraffic;
using derive::WireTraffic;
using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

config::Config narrow_config(std::int64_t ranks, std::int64_t ranks_per_node) {
  config::Config config;
  config.model.hidden_size = 2;
  config.model.num_attention_heads = 1;
  config.model.num_moe_experts = 64;
  config.model.moe_router_topk = 8;
  config.model.expert_model_parallel_size = ranks;
  config.train.global_batch_size = ranks;
  config.runtime.world_size = ranks;
  config.runtime.ranks_per_node = ranks_per_node;
  return config;
}

void add(WireTraffic& sum, const WireTraffic& part, double share) {
  sum.rows += part.rows * share;
  sum.payload += part.payload * share;
  sum.probabilities += part.probabilities * share;
  sum.metadata += part.metadata * share;
}

// Mean bytes that a rank sent per transfer, under uniform routing.
DispatchTraffic counted(const config::ModelConfig& model, const derive::DispatchShape& shape) {
  DispatchTraffic mean;
  std::mutex mutex;
  comm::run_threads({.world = static_cast<int>(shape.ranks)}, [&](comm::Endpoint& endpoint) {
    const DispatchGroups groups =
        join_dispatch_groups(endpoint, static_cast<int>(shape.ranks_per_node));
    devices::Workbench bench;
    auto& [device, pool, stream] = bench;
    comm::poison_on_error(endpoint, [&] {
      const std::int64_t k = model.moe_router_topk;
      const model::Routed routed{
          .x_TD = Tensor(pool, DType::F32, {shape.tokens, model.hidden_size}, Tag::Workspace),
          .p_Tk = Tensor(pool, DType::F32, {shape.tokens, k}, Tag::Workspace),
          .experts_Tk = Tensor(pool, DType::I32, {shape.tokens, k}, Tag::Workspace),
          .most_tokens = shape.tokens};
      const auto all = [](const Tensor& x, float value) {
        return std::vector<float>(static_cast<std::size_t>(x.elements()), value);
      };
      tensor::write<float>(*stream, routed.x_TD, all(routed.x_TD, 1));
      tensor::write<float>(*stream, routed.p_Tk, all(routed.p_Tk, 0.125f));
      tensor::write<std::int32_t>(
          *stream,
          routed.experts_Tk,
          uniform_choices(endpoint.rank() * shape.tokens, shape.tokens, k, model.experts()));
      const TripResult result = DispatchTrip(model, groups, shape, *stream, pool).run(routed);
      const std::lock_guard lock(mutex);
      add(mean.inside, result.sent.inside, 1.0 / static_cast<double>(shape.ranks));
      add(mean.between, result.sent.between, 1.0 / static_cast<double>(shape.ranks));
    });
  });
  return mean;
}

void expect_within_two_percent(const WireTraffic& got, const WireTraffic& want) {
  EXPECT_NEAR(got.rows, want.rows, 0.02 * want.rows);
  EXPECT_NEAR(got.payload, want.payload, 0.02 * want.payload);
  EXPECT_NEAR(got.probabilities, want.probabilities, 0.02 * want.probabilities);
  EXPECT_NEAR(got.metadata, want.metadata, 0.02 * want.metadata);
}

TEST(Bytes, OfUniformRoutingAreTheFormulasWithinTwoPercent) {
  constexpr std::int64_t kTokens = 24 * 1024;  // of all ranks
  for (const std::int64_t ranks : {2, 4, 8, 16}) {
    for (const std::int64_t per_machine : {2, 4}) {
      if (ranks % per_machine != 0) continue;
      const derive::DispatchShape shape{.ranks = ranks,
                                        .ranks_per_node = per_machine,
                                        .tokens = kTokens / ranks};
      for (const NamedDispatcher& dispatcher : dispatchers_of(narrow_config(ranks, per_machine))) {
        SCOPED_TRACE(base::text("{}, {} ranks, {} a machine", dispatcher.name, ranks, per_machine));
        const config::ModelConfig& model = dispatcher.config->model;
        const DispatchTraffic got = counted(model, shape);
        const DispatchTraffic want = derive::expected_traffic(model, shape);
        expect_within_two_percent(got.inside, want.inside);
        expect_within_two_percent(got.between, want.between);
      }
    }
  }
}

TEST(UniformChoices, AreDifferentAscendingAndTheSameForWhoeverAsks) {
  const std::vector<std::int32_t> all = uniform_choices(0, 500, 6, 16);
  std::vector<double> chosen(16);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 6 != 0) {
      EXPECT_LT(all[i - 1], all[i]);
    }
    chosen.at(static_cast<std::size_t>(all[i])) += 1;
  }
  for (const double count : chosen) EXPECT_NEAR(count, 500.0 * 6 / 16, 45);
  const std::vector<std::int32_t> later = uniform_choices(300, 200, 6, 16);
  EXPECT_TRUE(std::equal(later.begin(), later.end(), all.begin() + 300 * 6));
  EXPECT_EQ(uniform_choices(3, 1, 4, 4), (std::vector<std::int32_t>{0, 1, 2, 3}));
}

config::Config tiny_bench() {
  config::Config config = narrow_config(4, 2);
  config.model.num_moe_experts = 8;
  config.model.moe_router_topk = 2;
  config.model.params_dtype = DType::BF16;
  return config;
}

TEST(DispatchBench, MeasuresEveryDispatcherOverLinksOfItsChoice) {
  const rules::JudgedConfig config = judged(tiny_bench());
  int trips = 0, of_all = 0;
  const DispatchBench bench = bench_dispatch({.config = config,
                                              .tokens = 16,
                                              .rounds = 1,
                                              .progress =
                                                  [&](int done, int of) {
                                                    trips = done;
                                                    of_all = of;
                                                  },
                                              .stop = nullptr});
  ASSERT_EQ(bench.runs.size(), 4u);
  EXPECT_EQ(trips, of_all);
  EXPECT_EQ(bench.fabric.ranks_per_node, 2);
  EXPECT_DOUBLE_EQ(bench.fabric.intra.bytes_per_second, 10 * bench.fabric.inter.bytes_per_second);
  for (const DispatcherRun& run : bench.runs) {
    EXPECT_GT(run.fabric_seconds, 0) << run.name;
    EXPECT_GT(run.free_seconds, 0) << run.name;
    EXPECT_GT(run.peak_bytes, 0) << run.name;
    EXPECT_GT(run.share_of_link, 0) << run.name;
    EXPECT_EQ(run.one_machine_seconds.has_value(), run.name == "alltoall" || run.name == "deepep");
  }
}

TEST(DispatchBench, TakesTheLinksItIsGiven) {
  config::Config links = tiny_bench();
  links.fabric.inter_node_gb_per_second = 0.5;
  const rules::JudgedConfig config = judged(links);
  const DispatchBench bench = bench_dispatch(
      {.config = config, .tokens = 4, .rounds = 1, .progress = [](int, int) {}, .stop = nullptr});
  EXPECT_EQ(bench.fabric.inter.bytes_per_second, 0.5e9);
  EXPECT_EQ(bench.fabric.intra.bytes_per_second, 0);
}

TEST(DispatchBench, StopsBetweenTwoPasses) {
  const rules::JudgedConfig config = judged(tiny_bench());
  const std::atomic<bool> stop = true;
  EXPECT_THROW(
      bench_dispatch(
          {.config = config, .tokens = 4, .rounds = 9, .progress = [](int, int) {}, .stop = &stop}),
      Stopped);
}

}  // namespace dispatch_bench_test
}  // namespace weft::measure
