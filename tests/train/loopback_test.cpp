// One rank of a larger world whose bytes return to it: every dispatcher and order, its results, and
// the bytes of a real rank.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <mutex>

#include "tests/train/train_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/tensor/transfer.h"
#include "weft/train/guard/expert_messages.h"

namespace weft::train {
namespace loopback_test {

using config::CommBackend;
using config::Dispatcher;
using config::FlexBackend;

struct Sending {
  std::string name;
  Dispatcher type = Dispatcher::AllToAll;
  std::optional<FlexBackend> backend = {};
  std::int64_t per_machine = 0;
};

const std::vector<Sending>& sendings() {
  static const std::vector<Sending> all{
      {"AllToAll"},
      {"AllGather", Dispatcher::AllGather},
      {"DeepEp", Dispatcher::Flex, FlexBackend::DeepEp},
      {"HybridEp", Dispatcher::Flex, FlexBackend::HybridEp, 2},
      {"HybridEpOneMachine", Dispatcher::Flex, FlexBackend::HybridEp, 4},
  };
  return all;
}

config::Config alone(config::Config config, const Sending& sending) {
  config.runtime.backend = CommBackend::Loopback;
  config.model.moe_token_dispatcher_type = sending.type;
  config.model.moe_flex_dispatcher_backend = sending.backend;
  if (sending.per_machine > 0) config.runtime.ranks_per_node = sending.per_machine;
  return config;
}

void expect_finite(const Outcome& outcome) {
  for (const double loss : outcome.losses) EXPECT_TRUE(std::isfinite(loss)) << loss;
  for (const double norm : outcome.gradient_norms) {
    EXPECT_TRUE(std::isfinite(norm) && norm > 0) << norm;
  }
}

class Loopback : public ::testing::TestWithParam<Sending> {};

INSTANTIATE_TEST_SUITE_P(Dispatchers,
                         Loopback,
                         ::testing::ValuesIn(sendings()),
                         [](const auto& of) { return of.param.name; });

// Loss of the whole model on one rank, with the experts of rank 0 copied to all.
double loss_of_copied_experts(config::Config config, std::int64_t local, const Batch& batch) {
  config.runtime = {};
  config.model.expert_model_parallel_size = 1;
  config.model.moe_token_dispatcher_type = Dispatcher::AllToAll;
  config.model.moe_flex_dispatcher_backend = std::nullopt;
  config.train.global_batch_size =
      static_cast<std::int64_t>(batch.size()) * config.train.micro_batch_size;
  double loss = 0;
  on_ranks(config, [&](Engine& engine) {
    for (const model::Parameter& parameter : engine.parameters().all()) {
      if (parameter.spec.home != model::Home::Expert) continue;
      std::vector<float> values = floats_of(engine, parameter.weight);
      const std::size_t each = values.size() / static_cast<std::size_t>(parameter.weight.dim(0)) *
                               static_cast<std::size_t>(local);
      for (std::size_t i = each; i < values.size(); ++i) values[i] = values[i - each];
      tensor::write_floats(engine.lanes()[schedule::Lane::Compute], parameter.weight, values);
    }
    loss = forward_step(engine, batch).loss;
  });
  return loss;
}

// The local expert of equal index computes rows for a peer's experts, and they return.
TEST_P(Loopback, ComputesWhatExpertsModuloTheLocalOnesCompute) {
  const config::Config config =
      alone(with_layout(small_config(), {.world = 4, .ep = 4}), GetParam());
  Batch batch;
  double loss = 0;
  on_ranks(config, [&](Engine& engine) {
    batch = batch_of(engine, 0);
    loss = forward_step(engine, batch).loss;
  });
  const double expected = loss_of_copied_experts(config, config.model.experts() / 4, batch);
  EXPECT_NEAR(loss, expected, 1e-5 * expected);
}

TEST_P(Loopback, StaysFiniteAndHasTheSameBitsInEveryOrder) {
  for (const int slices : {1, 2}) {
    config::Config plain = alone(with_layout(small_config(), {.world = 8, .ep = 4}), GetParam());
    plain.train.global_batch_size = 16;
    plain.model.moe_aux_loss_coeff = {0.01};
    plain.comm_overlap.moe_token_slices = slices;
    const Outcome expected = train_some(plain, 4);
    expect_finite(expected);
    config::Config overlapped = plain;
    overlapped.comm_overlap.overlap_moe_expert_parallel_comm = true;
    overlapped.comm_overlap.delay_wgrad_compute = true;
    expect_same_bits(expected, train_some(overlapped, 4));
    expect_same_bits(expected, train_some(plain, 4, {}, devices::DeviceKind::HiddenCpu));
  }
}

TEST_P(Loopback, RunsPipelines) {
  for (const int vpp : {1, 2}) {
    config::Config plain =
        alone(with_layout(deep_config(), {.world = 8, .ep = 4, .pp = 2, .vpp = vpp}), GetParam());
    plain.train.global_batch_size = 16;
    const Outcome expected = train_some(plain, 3);
    expect_finite(expected);
    expect_same_bits(expected, train_some(plain, 3));
    if (vpp == 1) continue;
    config::Config overlapped = plain;
    overlapped.comm_overlap.overlap_moe_expert_parallel_comm = true;
    expect_same_bits(expected, train_some(overlapped, 3));
  }
}

// Peers send as rank 0 does, rotated: every rank gets the mean, so a budget above it suffices.
TEST(LoopbackBudget, IsNotExceededAboveTheMean) {
  for (const Sending& sending : {sendings()[3], sendings()[4]}) {
    config::Config config = alone(with_layout(small_config(), {.world = 4, .ep = 4}), sending);
    const Outcome free = train_some(config, 2);
    config.model.moe_expert_rank_capacity_factor = 1.01;
    on_ranks(config, [&](Engine& engine) {
      const Batch batch = batch_of(engine, 0);
      const StepTotals totals =
          train_step(engine, {.batch = batch, .learning_rate = 0}, exec::Tracing::Off);
      EXPECT_FALSE(totals.repeated);
    });
    expect_same_bits(free, train_some(config, 2));
  }
}

using Sums = std::map<std::string, std::vector<std::int64_t>>;

// Bytes that rank 0 sent to each member of its groups.
Sums sent_by_rank_zero(const config::Config& config) {
  Sums sums;
  std::mutex mutex;
  on_ranks(config, [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    train_step(engine, {.batch = batch, .learning_rate = 0}, exec::Tracing::Off);
    const std::lock_guard lock(mutex);
    if (engine.rank() != 0) return;
    const Groups& groups = engine.groups();
    for (const comm::Communicator* group : {groups.world.get(),
                                            groups.ep.get(),
                                            groups.ep_across.get(),
                                            groups.ep_within.get(),
                                            groups.dense_reduction.get(),
                                            groups.expert_reduction.get(),
                                            groups.dense_within.get(),
                                            groups.dense_across.get(),
                                            groups.expert_within.get(),
                                            groups.expert_across.get(),
                                            groups.replicas.get(),
                                            groups.sharers.get(),
                                            groups.pp_forward.get(),
                                            groups.pp_backward.get(),
                                            groups.embedding.get()}) {
      if (group == nullptr) continue;
      for (const comm::Sent& sent : group->sent()) sums[group->name()].push_back(sent.total());
      for (const auto& [operation, traffic] : group->traffic()) {
        sums[group->name()].push_back(traffic.calls);
      }
    }
  });
  return sums;
}

// Cases whose sizes do not depend on other ranks' choices.
TEST(LoopbackBytes, AreThoseOfTheRealRank) {
  config::Config padded = with_layout(deep_config(), {.world = 8, .ep = 2, .pp = 2, .vpp = 2});
  padded.train.global_batch_size = 16;
  padded.model.moe_expert_capacity_factor = 1.5;
  padded.model.moe_pad_expert_input_to_capacity = true;
  padded.model.share_embeddings_and_output_weights = true;
  config::Config gathered = with_layout(small_config(), {.world = 4, .ep = 2});
  gathered.model.moe_token_dispatcher_type = Dispatcher::AllGather;
  config::Config instances = with_layout(gathered, {.world = 8, .ep = 2});
  instances.ddp.use_distributed_optimizer = instances.optimizer.use_distributed_optimizer = true;
  instances.ddp.num_distributed_optimizer_instances = 2;
  for (config::Config config : {padded, gathered, instances}) {
    const Sums real = sent_by_rank_zero(config);
    for (const CommBackend backend : {CommBackend::Loopback, CommBackend::Fake}) {
      config.runtime.backend = backend;
      EXPECT_EQ(sent_by_rank_zero(config), real) << config::word(backend);
    }
  }
}

// In other cases, a rank receives as many rows from a peer as it sends; a step's rows are those
// that the rank chose.
TEST(LoopbackBytes, ARankSendsAndGetsTheRowsItChose) {
  for (const Sending& sending : sendings()) {
    config::Config config = alone(with_layout(small_config(), {.world = 4, .ep = 4}), sending);
    for (const int slices : {1, 3}) {
      config.comm_overlap.moe_token_slices = slices;
      on_ranks(config, [&](Engine& engine) {
        forward_step(engine, batch_of(engine, 0));
        const model::MicroBatchState& state = engine.program().state(0);
        std::int64_t rows = 0;
        for (const auto& slice : state.layers.front().slices) {
          const model::DispatchState& dispatch = slice.dispatch;
          rows += dispatch.plan.received + dispatch.arriving;
          EXPECT_EQ(dispatch.plan.send_rows, dispatch.plan.receive_rows);
          EXPECT_EQ(dispatch.across.send_rows, dispatch.across.receive_rows);
          EXPECT_EQ(dispatch.within.send_rows, dispatch.within.receive_rows);
        }
        EXPECT_EQ(rows, state.tokens * config.model.moe_router_topk) << sending.name;
      });
    }
  }
}

TEST(ExpertMessages, ArePermutationsThatBringAPeersRowsToTheLocalExperts) {
  for (const Sending& sending : sendings()) {
    const config::Config config =
        alone(with_layout(small_config(), {.world = 4, .ep = 4}), sending);
    const comm::ExpertMessages messages = expert_messages(judged(config)).at("ep");
    const std::int64_t local = config.model.experts() / 4;
    const std::int64_t machines = sending.per_machine > 0 ? 4 / sending.per_machine : 4;
    const bool by_expert = sending.type == Dispatcher::AllToAll;
    const std::int64_t of_slice = by_expert ? 4 * local : machines == 4 ? 8 : machines + 8;
    const std::int64_t places = 3 * of_slice;
    for (int member = 0; member < 4; ++member) {
      std::vector<bool> seen(static_cast<std::size_t>(places), false);
      for (std::int64_t place = 0; place < places; ++place) {
        seen.at(static_cast<std::size_t>(messages.counted_at(member, place))) = true;
      }
      EXPECT_TRUE(std::ranges::all_of(seen, [](bool one) { return one; })) << sending.name;
      // Counts for rank 0 equal rank 0's counts for it.
      const std::int64_t first = of_slice + (by_expert ? 0 : machines);
      const std::int64_t each = by_expert ? local : 1;
      EXPECT_EQ(messages.counted_at(member, first), first + member * each) << sending.name;
    }
  }
}

TEST(LoopbackFailure, OfAStepEndsTheRunInTime) {
  config::Config config =
      alone(with_layout(deep_config(), {.world = 8, .ep = 4, .pp = 2, .vpp = 2}), sendings()[0]);
  config.runtime.timeout_seconds = 20;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(on_ranks(config,
                        [](Engine& engine) {
                          Batch batch = batch_of(engine, 0);
                          for (MicroBatch& part : batch) part.ids.front() = 1 << 30;
                          train_step(engine, {.batch = batch}, exec::Tracing::Off);
                        }),
               base::InternalError);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace loopback_test
}  // namespace weft::train
