// Compares bytes declared by the anatomy with bytes counted by the engine's pool and communicators,
// exactly.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/train/train_support.h"
#include "weft/base/text.h"
#include "weft/model/tensor_copies.h"
#include "weft/tensor/transfer.h"

namespace weft::train {
namespace bytes_test {

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

// All bytes except gradients: rows, their counts, and row counts for a global loss.
std::int64_t layer_bytes(Engine& engine) {
  const Groups& groups = engine.groups();
  std::int64_t bytes = bytes_of(*groups.ep) + bytes_of(*groups.dense_reduction);
  bytes += bytes_of(*groups.tp);
  if (groups.replicas) bytes += bytes_of(*groups.replicas);
  if (groups.sharers) bytes += bytes_of(*groups.sharers);
  bytes += bytes_of(*groups.cp);
  if (groups.cp_heads) bytes += bytes_of(*groups.cp_heads) + bytes_of(*groups.cp_ring);
  if (groups.ep_across) bytes += bytes_of(*groups.ep_across) + bytes_of(*groups.ep_within);
  return bytes;
}

// Bytes sent by a sum over a group: everything but the rank's own part, and its part's sum to every
// other rank.
std::int64_t sum_bytes(const comm::Communicator& group, std::int64_t elements) {
  const std::int64_t n = group.size();
  const std::int64_t own = elements / n + (group.rank() < elements % n ? 1 : 0);
  return (elements - own + (n - 1) * own) * tensor::size_of(tensor::DType::F32);
}

// Bytes of dense gradients: over replicas, and over tensor-parallel ranks with copies.
std::int64_t reduction_bytes(Engine& engine) {
  const Groups& groups = engine.groups();
  const tensor::Tensor& all = engine.parameters().buffer(model::Home::Dense).gradients;
  std::int64_t bytes = sum_bytes(*groups.dense_reduction, all.elements());
  for (const model::CopiedRange& copied :
       model::copied_ranges(engine.parameters(), groups.grid.tp())) {
    if (copied.parts == 1) bytes += sum_bytes(*groups.tp, copied.elements.count);
  }
  return bytes;
}

enum class Way { Out, Back };

// Numbers on the host, or read from the device that alone knows them.
std::vector<std::int64_t> numbers_of(tensor::Stream& stream,
                                     const std::vector<std::int64_t>& host,
                                     const tensor::Tensor& device) {
  if (!host.empty() || !device.defined()) return host;
  return tensor::read<std::int64_t>(stream, device);
}

std::vector<std::int64_t> rows_over(tensor::Stream& stream, const model::Hop& hop, Way way) {
  return way == Way::Out ? numbers_of(stream, hop.send_rows, hop.send)
                         : numbers_of(stream, hop.receive_rows, hop.receive);
}

// Rows that leave the rank towards the experts, or return: over one hop or two.
std::int64_t rows_to_others(tensor::Stream& stream,
                            const model::DispatchState& state,
                            int ep_rank,  // rank among those that hold the experts
                            Way way) {
  const auto others = [](const std::vector<std::int64_t>& rows, int self) {
    std::int64_t sum = 0;
    for (std::size_t peer = 0; peer < rows.size(); ++peer) {
      if (static_cast<int>(peer) != self) sum += rows[peer];
    }
    return sum;
  };
  const bool out = way == Way::Out;
  const auto hop = [&](const model::Hop& of, int self) {
    return others(rows_over(stream, of, way), self);
  };
  const int per_machine =
      std::max(1, static_cast<int>(rows_over(stream, state.within, way).size()));
  return others(out ? state.plan.send_rows : state.plan.receive_rows, ep_rank) +
         hop(state.across, ep_rank / per_machine) + hop(state.within, ep_rank % per_machine);
}

schedule::Load load_of(tensor::Stream& stream,
                       const model::DispatchState& state,
                       std::int64_t tokens) {
  const bool two = rows_over(stream, state.within, Way::Out).size() > 1;
  return {.tokens = tokens,
          .rows = state.plan.received + state.arriving,
          .copies = two ? state.within.room : state.across.room,
          .passing = two ? state.across.room : 0,
          .onward = two ? state.within.token_R.dim(0) : 0};
}

// Bytes that a rank keeps and sends for a micro-batch, by the anatomy of its chunks.
void declare(tensor::Stream& stream,
             const schedule::Anatomy& anatomy,
             const model::MicroBatchState& state,
             int ep_rank,
             Counted& own) {
  const std::int64_t tokens = state.tokens;
  const auto declare_end = [&](const std::vector<schedule::PieceAnatomy>& end) {
    for (const schedule::PieceAnatomy& piece : end) {
      own.declared_kept += piece.kept.of({.tokens = tokens});
      if (piece.is_recomputed) own.declared_kept -= piece.remade.of({.tokens = tokens});
      own.declared_sent_forward += piece.sent_forward.of({.tokens = tokens});
      own.declared_sent_backward += piece.sent_backward.of({.tokens = tokens});
    }
  };
  for (const schedule::Chunk& chunk : anatomy.chunks) {
    if (chunk.has_embed) {
      own.declared_kept += state.ids_T.bytes();
      declare_end(anatomy.embed);
    }
    if (chunk.has_head) {
      own.declared_kept += state.labels_T.bytes();
      declare_end(anatomy.head);
    }
    const bool passes_through = chunk.layers == 0 && chunk.sends();
    if (chunk.receives() && !passes_through) {
      own.declared_kept += anatomy.receive.kept.of({.tokens = tokens});
    }
    for (int layer = chunk.first_layer; layer < chunk.end_layer(); ++layer) {
      const model::LayerState& kept = state.layers[static_cast<std::size_t>(layer)];
      const model::DispatchState dispatch =
          kept.slices.empty() ? model::DispatchState{} : kept.slices.front().dispatch;
      const schedule::Load load = load_of(stream, dispatch, tokens);
      const std::int64_t leaving = rows_to_others(stream, dispatch, ep_rank, Way::Out);
      const std::int64_t returning = rows_to_others(stream, dispatch, ep_rank, Way::Back);
      for (const schedule::PieceAnatomy& piece : anatomy.layers[static_cast<std::size_t>(layer)]) {
        own.declared_kept += piece.kept.of(load);
        if (piece.is_recomputed) own.declared_kept -= piece.remade.of(load);
        const bool back = piece.piece == schedule::Piece::Combine;
        const auto rows = [&](std::int64_t n) {
          return schedule::Load{.tokens = tokens, .rows = n};
        };
        const std::int64_t steps = piece.steps ? piece.steps->count : 1;
        own.declared_sent_forward +=
            steps * piece.sent_forward.of(rows(back ? returning : leaving));
        own.declared_sent_backward +=
            steps * piece.sent_backward.of(rows(back ? leaving : returning));
        if (piece.is_recomputed) {
          own.declared_sent_backward += steps * piece.sent_forward.of(rows(0));
        }
      }
    }
  }
}

// Bytes to pipeline neighbours in a training step.
std::int64_t declared_between_stages(Engine& engine, std::int64_t tokens) {
  std::int64_t bytes = 0;
  for (const schedule::Entry& entry : engine.plan().training.entries) {
    const schedule::Node& node = entry.node;
    if (node.piece != schedule::Piece::Send) continue;
    bytes += engine.plan().anatomy.send.sent(node.direction).of({.tokens = tokens});
  }
  return bytes;
}

Counted count(const config::Config& config, devices::DeviceKind device) {
  Counted sum;
  std::mutex mutex;
  const auto run = [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    const schedule::RankPlan& plan = engine.plan();
    Counted own;
    own.kept = -live_bytes(engine);
    own.sent = -layer_bytes(engine);
    EXPECT_FALSE(forward_step(engine, batch).repeated);
    own.kept += live_bytes(engine);
    own.sent += layer_bytes(engine);
    const std::int64_t tokens = engine.program().state(0).tokens;
    for (int m = 0; m < plan.shape.micro_batches; ++m) {
      declare(engine.lanes()[schedule::Lane::Compute],
              plan.anatomy,
              engine.program().state(m),
              engine.groups().ep->rank(),
              own);
    }
    const std::int64_t before = layer_bytes(engine), pp_before = pp_bytes(engine);
    engine.program().drop_states();
    train_step(engine, {.batch = batch, .learning_rate = 0}, exec::Tracing::Off);
    own.declared_sent_backward += own.declared_sent_forward;
    EXPECT_EQ(layer_bytes(engine) - before, own.declared_sent_backward + reduction_bytes(engine));
    EXPECT_EQ(pp_bytes(engine) - pp_before, declared_between_stages(engine, tokens));
    const std::lock_guard lock(mutex);
    sum.kept += own.kept;
    sum.sent += own.sent;
    sum.declared_kept += own.declared_kept;
    sum.declared_sent_forward += own.declared_sent_forward;
  };
  on_ranks(config, run, {}, device);
  return sum;
}

// Runs on every device with its own memory: the CPU, and the GPU if present.
void expect_declared(const config::Config& whole) {
  const config::Config config = with_few_micro_batches(whole);
  for (const devices::DeviceKind device : devices::all_devices()) {
    if (device == devices::DeviceKind::HiddenCpu) continue;
    SCOPED_TRACE(devices::name_of(device));
    const Counted counted = count(config, device);
    EXPECT_EQ(counted.kept, counted.declared_kept);
    EXPECT_EQ(counted.sent, counted.declared_sent_forward);
  }
}

class Bytes : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(Bytes, DeclaredEqualsCounted) {
  for (const config::QkNorm norm :
       {config::QkNorm::None, config::QkNorm::Head, config::QkNorm::Projection}) {
    for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
      config::Config config = with_layout(small_config(), GetParam());
      config.model.qk_layernorm = norm;
      config.model.params_dtype = precision;
      expect_declared(config);
    }
  }
}

TEST_P(Bytes, DeclaredEqualsCountedForNormAndRotationInOne) {
  config::Config config = with_layout(small_config(), GetParam());
  config.model.apply_rope_fusion = true;
  expect_declared(config);
}

TEST_P(Bytes, DeclaredEqualsCountedForGradientsOverLogits) {
  config::Config config = with_layout(small_config(), GetParam());
  config.model.params_dtype = base::DType::BF16;
  config.model.cross_entropy_loss_fusion = true;
  expect_declared(config);
}

TEST_P(Bytes, DeclaredEqualsCountedForAPaddedVocabulary) {
  config::Config config = with_layout(small_config(), GetParam());
  config.model.vocab_size = 67;
  config.model.should_pad_vocab = true;
  config.model.make_vocab_size_divisible_by = 6;
  expect_declared(config);
}

TEST_P(Bytes, DeclaredEqualsCountedForLatentAttention) {
  for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
    for (const bool compressed : {true, false}) {
      config::Config config = with_layout(latent_config(), GetParam());
      config.model.params_dtype = precision;
      if (!compressed) config.model.q_lora_rank = std::nullopt;
      expect_declared(config);
    }
  }
}

TEST_P(Bytes, DeclaredEqualsCountedForSharedExperts) {
  for (const bool gate : {false, true}) {
    for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
      config::Config config = with_layout(small_config(), GetParam());
      config.model.moe_shared_expert_intermediate_size = 20;
      config.model.moe_shared_expert_gate = gate;
      config.model.params_dtype = precision;
      expect_declared(config);
    }
  }
}

// Some slots are dropped, and some tokens lose all.
TEST_P(Bytes, DeclaredEqualsCountedWithACapacityAndAGlobalLoss) {
  config::Config config = with_layout(small_config(), GetParam());
  config.model.moe_expert_capacity_factor = 0.5;
  config.model.moe_router_load_balancing_type = {config::LoadBalancing::GlobalAuxLoss};
  config.model.moe_aux_loss_coeff = {0.1};
  expect_declared(config);
}

// Ranks that share sequences, with every exchange of keys or heads.
TEST(BytesOfContext, DeclaredEqualsCounted) {
  using enum config::CpComm;
  for (config::Config config : {small_config(), latent_config()}) {
    config.model.num_query_groups = std::nullopt;
    config.runtime.world_size = config.model.context_parallel_size = 4;
    config.model.hierarchical_context_parallel_sizes = {2, 2};
    config.model.moe_router_load_balancing_type = {config::LoadBalancing::AuxLoss,
                                                   config::LoadBalancing::SeqAuxLoss};
    config.model.moe_aux_loss_coeff = {0.01, 0.02};
    config.train.micro_batch_size = 2;
    config.model.cp_comm_type = {P2p, AllGather, AllToAllP2p};
    expect_declared(config);
    config.model.params_dtype = base::DType::BF16;
    config.model.cp_comm_type = {AllToAll, P2p, AllToAllP2p};
    expect_declared(config);
    config.model.qk_layernorm = config::QkNorm::None;
    config.model.q_lora_rank = std::nullopt;
    expect_declared(config);
  }
}

// Tensor-parallel ranks that exchange tokens in steps.
TEST(BytesOfTensorOverlap, DeclaredEqualsCounted) {
  for (config::Config config : {small_config(), latent_config()}) {
    config = with_layout(std::move(config), {.world = 4, .tp = 4});
    config.comm_overlap.tp_comm_overlap = true;
    config.model.moe_shared_expert_intermediate_size = 20;
    expect_declared(config);
    config.model.moe_shared_expert_gate = true;
    config.model.params_dtype = base::DType::BF16;
    config.runtime.world_size = config.model.tensor_model_parallel_size = 2;
    expect_declared(config);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks,
                         Bytes,
                         ::testing::Values(LayoutCase{},
                                           LayoutCase{.world = 2},
                                           LayoutCase{.world = 2, .ep = 2},
                                           LayoutCase{.world = 2, .tp = 2},
                                           LayoutCase{.world = 4, .ep = 2, .tp = 4},
                                           LayoutCase{.world = 8, .ep = 8}),
                         [](const auto& param_info) { return name_of(param_info.param); });

// Counts of a micro-batch, of its sequences and of all ranks, with a shared micro-batch.
TEST(BalanceBytes, DeclaredEqualsCountedForASharedMicroBatch) {
  config::Config config = with_layout(small_config(), {.world = 4, .ep = 2, .tp = 2});
  config.train.micro_batch_size = 2;
  config.model.moe_router_load_balancing_type = {config::LoadBalancing::AuxLoss,
                                                 config::LoadBalancing::SeqAuxLoss,
                                                 config::LoadBalancing::GlobalAuxLoss};
  config.model.moe_aux_loss_coeff = {0.1, 0.1, 0.1};
  expect_declared(config);
}

TEST(DispatcherBytes, DeclaredEqualsCounted) {
  enum class Room { Exact, Dropped, Padded, Budget };
  struct Sending {
    config::Dispatcher type;
    std::optional<config::FlexBackend> backend = {};
    std::int64_t per_machine = 4;
    Room room = Room::Exact;
  };
  using config::Dispatcher;
  using config::FlexBackend;
  std::vector<Sending> sendings{{Dispatcher::AllGather},
                                {Dispatcher::AllGather, std::nullopt, 4, Room::Dropped},
                                {Dispatcher::AllGather, std::nullopt, 4, Room::Padded},
                                {Dispatcher::AllToAll, std::nullopt, 4, Room::Padded},
                                {Dispatcher::Flex, FlexBackend::DeepEp},
                                {Dispatcher::Flex, FlexBackend::DeepEp, 2},
                                {Dispatcher::Flex, FlexBackend::DeepEp, 4, Room::Dropped}};
  for (const std::int64_t per_machine : {1, 2, 4}) {
    for (const Room room : {Room::Exact, Room::Dropped, Room::Padded, Room::Budget}) {
      sendings.push_back({Dispatcher::Flex, FlexBackend::HybridEp, per_machine, room});
    }
  }
  for (const Sending& sending : sendings) {
    SCOPED_TRACE(base::text("{}, {} a machine, room {}",
                            config::word(sending.type),
                            sending.per_machine,
                            static_cast<int>(sending.room)));
    for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
      // With bf16, two ranks share an expert.
      const int etp = precision == base::DType::BF16 ? 2 : 1;
      config::Config config = with_layout(small_config(), {.world = 4, .ep = 4 / etp, .etp = etp});
      config.model.params_dtype = precision;
      config.model.moe_router_topk = 3;
      config.model.moe_shared_expert_intermediate_size = 20;
      config.model.moe_token_dispatcher_type = sending.type;
      config.model.moe_flex_dispatcher_backend = sending.backend;
      config.runtime.ranks_per_node = sending.per_machine;
      if (sending.room == Room::Dropped) config.model.moe_expert_capacity_factor = 0.3;
      if (sending.room == Room::Padded) config.model.moe_expert_capacity_factor = 1.5;
      config.model.moe_pad_expert_input_to_capacity = sending.room == Room::Padded;
      if (sending.room == Room::Budget) config.model.moe_expert_rank_capacity_factor = 4;
      for (const auto backend : {config::CommBackend::Threads, config::CommBackend::Loopback}) {
        config.runtime.backend = backend;
        expect_declared(config);
      }
    }
  }
}

class PipelineBytes : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(PipelineBytes, DeclaredEqualsCounted) {
  for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
    config::Config config = with_layout(deep_config(), GetParam());
    config.model.params_dtype = precision;
    for (const auto backend : {config::CommBackend::Threads, config::CommBackend::Loopback}) {
      config.runtime.backend = backend;
      expect_declared(config);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ranks,
    PipelineBytes,
    ::testing::Values(LayoutCase{.world = 2, .pp = 2},
                      LayoutCase{.world = 4, .ep = 2, .pp = 2, .vpp = 2},
                      LayoutCase{.world = 4, .pp = 4, .stages = "E|ttt||tttttL"},
                      LayoutCase{.world = 4, .pp = 2, .vpp = 2, .stages = "Ett|t|ttttt|L"},
                      LayoutCase{.world = 4,
                                 .ep = 2,
                                 .pp = 2,
                                 .vpp = 2,
                                 .stages = "E|tt|ttt|tttL",
                                 .schedule = config::PipelineSchedule::DualPipeV}),
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

}  // namespace bytes_test
}  // namespace weft::train
