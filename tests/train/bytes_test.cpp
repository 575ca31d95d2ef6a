// What the anatomy declares, against what the engine's pool and communicators count, to the byte.
#include <gtest/gtest.h>

#include <mutex>

#include "train_support.h"
#include "weft/schedule/anatomy_bytes.h"

namespace weft::train {
namespace {

std::int64_t live_bytes(Engine& engine) {
  return static_cast<std::int64_t>(engine.pool().use(tensor::Tag::Activations).bytes +
                                   engine.pool().use(tensor::Tag::Communication).bytes);
}

struct Counted {
  std::int64_t kept = 0, sent = 0;
  std::int64_t declared_kept = 0, declared_sent_forward = 0, declared_sent_backward = 0;
};

std::int64_t bytes_of(const comm::Communicator& group) {
  std::int64_t bytes = 0;
  for (const auto& [operation, traffic] : group.traffic()) bytes += traffic.bytes_sent;
  return bytes;
}

std::int64_t pp_bytes(Engine& engine) {
  const Groups& groups = engine.groups();
  return groups.pp_forward ? bytes_of(*groups.pp_forward) + bytes_of(*groups.pp_backward) : 0;
}

// What a rank keeps of a micro-batch and sends to its ep group, by the anatomy of its chunks.
void declare(const schedule::Anatomy& anatomy,
             const model::MicroBatchState& state,
             int ep_rank,
             Counted& own) {
  const std::int64_t tokens = state.tokens;
  for (const schedule::Chunk& chunk : anatomy.chunks) {
    if (chunk.has_embed) own.declared_kept += tokens * 4 + anatomy.embed.kept.of(tokens, 0);
    if (chunk.has_head) own.declared_kept += tokens * 4 + anatomy.head.kept.of(tokens, 0);
    const bool passes_through = chunk.layers == 0 && chunk.sends();
    if (chunk.receives() && !passes_through) {
      own.declared_kept += anatomy.receive.kept.of(tokens, 0);
    }
    for (int layer = chunk.first_layer; layer < chunk.end_layer(); ++layer) {
      const model::LayerState& kept = state.layers[static_cast<std::size_t>(layer)];
      const model::Exchange exchange =
          kept.slices.empty() ? model::Exchange{} : kept.slices.front().dispatch.plan;
      const auto to_others = [&](const std::vector<std::int64_t>& rows) {
        std::int64_t sum = 0;
        for (std::size_t peer = 0; peer < rows.size(); ++peer) {
          if (static_cast<int>(peer) != ep_rank) sum += rows[peer];
        }
        return sum;
      };
      const std::int64_t leaving = to_others(exchange.send_rows);
      const std::int64_t returning = to_others(exchange.receive_rows);
      for (const schedule::PieceAnatomy& piece : anatomy.layers[static_cast<std::size_t>(layer)]) {
        own.declared_kept += piece.kept.of(tokens, exchange.received);
        const bool back = piece.piece == schedule::Piece::Combine;
        own.declared_sent_forward += piece.sent_forward.of(tokens, back ? returning : leaving);
        own.declared_sent_backward += piece.sent_backward.of(tokens, back ? leaving : returning);
      }
    }
  }
}

// To the neighbours of the pipeline, in a training step.
std::int64_t declared_between_stages(Engine& engine, std::int64_t tokens) {
  std::int64_t bytes = 0;
  for (const schedule::Entry& entry : engine.plan().training.entries) {
    const schedule::Node& node = entry.node;
    if (node.piece != schedule::Piece::Send) continue;
    bytes += schedule::sent_bytes(engine.config().model, node.piece, node.direction).of(tokens, 0);
  }
  return bytes;
}

Counted count(const config::Config& config) {
  Counted sum;
  std::mutex mutex;
  on_ranks(config, [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    const schedule::RankPlan& plan = engine.plan();
    const comm::Communicator& ep = *engine.groups().ep;
    Counted own;
    own.kept = -live_bytes(engine);
    own.sent = -bytes_of(ep);
    forward_pass(engine, batch);
    own.kept += live_bytes(engine);
    own.sent += bytes_of(ep);
    const std::int64_t tokens = engine.program().state(0).tokens;
    for (int m = 0; m < plan.shape.micro_batches; ++m) {
      declare(plan.anatomy, engine.program().state(m), engine.groups().self.ep, own);
    }
    const std::int64_t before = bytes_of(ep), pp_before = pp_bytes(engine);
    engine.program().drop_states();
    train_step(engine, {.batch = batch, .learning_rate = 0}, exec::Tracing::Off);
    own.declared_sent_backward += own.declared_sent_forward;
    EXPECT_EQ(bytes_of(ep) - before, own.declared_sent_backward);
    EXPECT_EQ(pp_bytes(engine) - pp_before, declared_between_stages(engine, tokens));
    const std::lock_guard lock(mutex);
    sum.kept += own.kept;
    sum.sent += own.sent;
    sum.declared_kept += own.declared_kept;
    sum.declared_sent_forward += own.declared_sent_forward;
  });
  return sum;
}

class Bytes : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(Bytes, DeclaredEqualsCounted) {
  for (const config::QkNorm norm :
       {config::QkNorm::None, config::QkNorm::Head, config::QkNorm::Projection}) {
    for (const config::Precision precision : {config::Precision::Fp32, config::Precision::Bf16}) {
      config::Config config = with_layout(small_config(), GetParam());
      config.model.qk_layernorm = norm;
      config.model.params_dtype = precision;
      const Counted counted = count(config);
      EXPECT_EQ(counted.kept, counted.declared_kept);
      EXPECT_EQ(counted.sent, counted.declared_sent_forward);
    }
  }
}

TEST_P(Bytes, DeclaredEqualsCountedForLatentAttention) {
  for (const config::Precision precision : {config::Precision::Fp32, config::Precision::Bf16}) {
    for (const bool compressed : {true, false}) {
      config::Config config = with_layout(latent_config(), GetParam());
      config.model.params_dtype = precision;
      if (!compressed) config.model.q_lora_rank = std::nullopt;
      const Counted counted = count(config);
      EXPECT_EQ(counted.kept, counted.declared_kept);
      EXPECT_EQ(counted.sent, counted.declared_sent_forward);
    }
  }
}

TEST_P(Bytes, DeclaredEqualsCountedForSharedExperts) {
  for (const bool gate : {false, true}) {
    for (const config::Precision precision : {config::Precision::Fp32, config::Precision::Bf16}) {
      config::Config config = with_layout(small_config(), GetParam());
      config.model.moe_shared_expert_intermediate_size = 20;
      config.model.moe_shared_expert_gate = gate;
      config.model.params_dtype = precision;
      const Counted counted = count(config);
      EXPECT_EQ(counted.kept, counted.declared_kept);
      EXPECT_EQ(counted.sent, counted.declared_sent_forward);
    }
  }
}

TEST_P(Bytes, DeclaredEqualsCountedWithACapacityAndAGlobalLoss) {
  config::Config config = with_layout(small_config(), GetParam());
  config.model.moe_expert_capacity_factor = 100;
  config.model.moe_router_load_balancing_type = {config::LoadBalancing::GlobalAuxLoss};
  config.model.moe_aux_loss_coeff = {0.1};
  const Counted counted = count(config);
  EXPECT_EQ(counted.kept, counted.declared_kept);
  EXPECT_EQ(counted.sent, counted.declared_sent_forward);
}

INSTANTIATE_TEST_SUITE_P(Ranks,
                         Bytes,
                         ::testing::Values(LayoutCase{},
                                           LayoutCase{.world = 2, .ep = 2},
                                           LayoutCase{.world = 8, .ep = 8}),
                         [](const auto& param_info) { return name_of(param_info.param); });

class PipelineBytes : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(PipelineBytes, DeclaredEqualsCounted) {
  for (const config::Precision precision : {config::Precision::Fp32, config::Precision::Bf16}) {
    config::Config config = with_layout(deep_config(), GetParam());
    config.model.params_dtype = precision;
    const Counted counted = count(config);
    EXPECT_EQ(counted.kept, counted.declared_kept);
    EXPECT_EQ(counted.sent, counted.declared_sent_forward);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ranks,
    PipelineBytes,
    ::testing::Values(LayoutCase{.world = 2, .pp = 2},
                      LayoutCase{.world = 4, .ep = 2, .pp = 2, .vpp = 2},
                      LayoutCase{.world = 4, .pp = 4, .stages = "E|ttt||tttttL"},
                      LayoutCase{.world = 4, .pp = 2, .vpp = 2, .stages = "Ett|t|ttttt|L"}),
    [](const auto& param_info) { return name_of(param_info.param); });

void expect_clean_steps(const config::Config& config) {
  on_ranks(config, [](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    const std::int64_t before = live_bytes(engine);
    std::vector<std::size_t> peaks;
    for (int step = 0; step < 3; ++step) {
      engine.pool().reset_peaks();
      train_step(engine, {.batch = batch, .step = step, .learning_rate = 0}, exec::Tracing::Off);
      EXPECT_EQ(live_bytes(engine), before);
      peaks.push_back(engine.pool().total().peak);
    }
    EXPECT_EQ(peaks[0], peaks[1]);
    EXPECT_EQ(peaks[1], peaks[2]);
  });
}

TEST(Memory, ATrainingStepLeavesNothingBehindAndPeaksRepeat) {
  expect_clean_steps(with_layout(small_config(), {.world = 2, .ep = 2}));
}

TEST(Memory, AStepOfLatentAttentionLeavesNothingBehindAndPeaksRepeat) {
  expect_clean_steps(with_layout(latent_config(), {.world = 2, .ep = 2}));
}

TEST(Memory, SharedExpertsLeaveNothingBehindInAnyOrder) {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.model.moe_shared_expert_intermediate_size = 20;
  config.model.moe_shared_expert_gate = true;
  expect_clean_steps(config);
  config.model.moe_shared_expert_overlap = true;
  expect_clean_steps(config);
  config.model.moe_shared_expert_overlap = false;
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  expect_clean_steps(config);
}

TEST(Memory, APipelinedStepLeavesNothingBehindAndPeaksRepeat) {
  for (const bool overlap : {false, true}) {
    config::Config config = with_layout(deep_config(), {.world = 4, .ep = 2, .pp = 2, .vpp = 2});
    config.comm_overlap.overlap_moe_expert_parallel_comm = overlap;
    expect_clean_steps(config);
  }
}

}  // namespace
}  // namespace weft::train
