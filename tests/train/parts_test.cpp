// Pieces as parts, and recomputed parts: bits equal those of whole pieces that keep their outputs;
// bytes are as declared by the anatomy.
#include <gtest/gtest.h>

#include "train_support.h"
#include "weft/base/text.h"
#include "weft/schedule/memory/memory.h"
#include "weft/schedule/text/text.h"

namespace weft::train {
namespace parts_test {

using schedule::Detail;
using schedule::Part;
using schedule::Piece;

const std::vector<Piece> kAll{Piece::Attention, Piece::Route, Piece::Mlp, Piece::Experts};
constexpr int kSteps = 3;

struct Recomputed {
  std::string name;
  Detail detail;
};

const std::vector<Recomputed> kRecomputed{
    {"attention", {{}, {Piece::Attention}}},
    {"core", {kAll, {{Piece::Attention, Part::Core}}}},
    {"qkv and core", {kAll, {{Piece::Attention, Part::Qkv}, {Piece::Attention, Part::Core}}}},
    {"qkv alone", {kAll, {{Piece::Attention, Part::Qkv}}}},
    {"mlp", {{}, {Piece::Mlp}}},
    {"activations", {kAll, {{Piece::Mlp, Part::Act}, {Piece::Experts, Part::Act}}}},
    {"first products", {kAll, {{Piece::Mlp, Part::Fc1}, {Piece::Experts, Part::Fc1}}}},
    {"experts", {kAll, {{Piece::Experts, Part::Fc1}, {Piece::Experts, Part::Act}}}},
    {"route", {{}, {Piece::Route}}},
    {"norms", {kAll, {{Piece::Attention, Part::Norm}, {Piece::Route, Part::Norm}}}},
    {"rows", {{}, {Piece::Permute, Piece::Dispatch, Piece::Experts}}},
    {"everything",
     {{},
      {Piece::Attention,
       Piece::Route,
       Piece::Permute,
       Piece::Dispatch,
       Piece::Mlp,
       Piece::Experts}}},
};

std::vector<config::Config> models() {
  config::Config normed = small_config(), latent = latent_config(), shared = small_config();
  shared.model.moe_shared_expert_intermediate_size = 20;
  shared.model.moe_shared_expert_gate = true;
  config::Config whole_queries = latent_config();
  whole_queries.model.q_lora_rank = std::nullopt;
  config::Config plain = small_config();
  plain.model.qk_layernorm = config::QkNorm::None;
  plain.model.params_dtype = base::DType::BF16;
  return {normed, latent, shared, whole_queries, plain};
}

TEST(Parts, HaveTheBitsOfTheirPieces) {
  for (const config::Config& model : models()) {
    for (const LayoutCase& layout : {LayoutCase{}, LayoutCase{.world = 2, .ep = 2}}) {
      const config::Config config = with_layout(model, layout);
      expect_same_bits(train_some(config, kSteps), train_some(config, kSteps, {kAll, {}}));
    }
  }
}

TEST(Parts, HaveTheBitsOfTheirPiecesInEveryOrder) {
  config::Config config = with_layout(deep_config(), {.world = 4, .ep = 2, .pp = 2, .vpp = 2});
  const Outcome expected = train_some(config, kSteps);
  expect_same_bits(expected, train_some(config, kSteps, {kAll, {}}));
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  expect_same_bits(expected, train_some(config, kSteps, {kAll, {}}));
  config.comm_overlap.moe_token_slices = 2;
  const Outcome sliced = train_some(config, kSteps);
  expect_same_bits(sliced, train_some(config, kSteps, {kAll, {}}));
}

TEST(Recompute, ChangesNoBit) {
  std::size_t first = 0;
  for (const config::Config& model : models()) {
    const config::Config config = with_few_micro_batches(with_layout(model, {.world = 2, .ep = 2}));
    const Outcome expected = train_some(config, kSteps);
    for (const Recomputed& again : third_or_all(kRecomputed, first++ % 3)) {
      SCOPED_TRACE(again.name);
      expect_same_bits(expected, train_some(config, kSteps, again.detail));
    }
  }
}

TEST(Recompute, ChangesNoBitUnderOverlap) {
  config::Config config = with_layout(deep_config(), {.world = 4, .ep = 2, .pp = 2, .vpp = 2});
  config.comm_overlap.overlap_moe_expert_parallel_comm = true;
  config.comm_overlap.delay_wgrad_compute = true;
  config.comm_overlap.moe_token_slices = 2;
  const Outcome expected = train_some(config, kSteps);
  for (const Recomputed& again : third_or_all(kRecomputed, 2)) {
    SCOPED_TRACE(again.name);
    expect_same_bits(expected, train_some(config, kSteps, again.detail));
  }
}

// Noise, capacity, biases and losses: a step counts each of them once.
TEST(Recompute, RoutesAsBeforeAndCountsOnce) {
  config::Config config = with_layout(small_config(), {.world = 2, .ep = 2});
  config.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
  config.model.moe_router_enable_expert_bias = true;
  config.model.moe_router_bias_update_rate = 0.01;
  config.model.moe_expert_capacity_factor = 0.6;
  config.model.moe_input_jitter_eps = 0.05;
  config.model.moe_z_loss_coeff = 0.01;
  config.model.moe_router_load_balancing_type = {config::LoadBalancing::GlobalAuxLoss,
                                                 config::LoadBalancing::AuxLoss};
  config.model.moe_aux_loss_coeff = {0.1, 0.1};
  const auto totals_of = [&](const Detail& detail) {
    StepTotals last;
    on_ranks(
        config,
        [&](Engine& engine) {
          for (std::int64_t step = 0; step < kSteps; ++step) {
            const Batch batch = batch_of(engine, step);
            const StepTotals totals =
                train_step(engine,
                           {.batch = batch, .step = step, .learning_rate = config.optimizer.lr},
                           exec::Tracing::Off);
            if (engine.rank() == 0) last = totals;
          }
        },
        detail);
    return last;
  };
  const Outcome expected = train_some(config, kSteps);
  const StepTotals plain = totals_of({});
  EXPECT_GT(plain.expert_loads.at(0).dropped, 0);
  for (const Detail& detail :
       {Detail{{}, {Piece::Route}},
        Detail{
            {},
            {Piece::Attention, Piece::Route, Piece::Permute, Piece::Dispatch, Piece::Experts}}}) {
    expect_same_bits(expected, train_some(config, kSteps, detail));
    const StepTotals again = totals_of(detail);
    EXPECT_EQ(again.loss, plain.loss);
    EXPECT_EQ(again.router_losses.batch, plain.router_losses.batch);
    EXPECT_EQ(again.router_losses.global, plain.router_losses.global);
    EXPECT_EQ(again.router_losses.z, plain.router_losses.z);
    for (std::size_t i = 0; i < plain.expert_loads.size(); ++i) {
      EXPECT_EQ(again.expert_loads.at(i).max, plain.expert_loads[i].max);
      EXPECT_EQ(again.expert_loads.at(i).dropped, plain.expert_loads[i].dropped);
    }
  }
}

std::int64_t live_bytes(Engine& engine) {
  return static_cast<std::int64_t>(engine.pool().use(tensor::Tag::Activations).bytes +
                                   engine.pool().use(tensor::Tag::Communication).bytes);
}

struct Memory {
  std::int64_t kept = 0, declared = 0;  // when the forward of the first micro-batch ends
  std::int64_t peak = 0;
  std::int64_t left = 0;  // after the step
};

// One rank holds all rows, so the load is known beforehand.
Memory memory_of(const config::Config& config, const Detail& detail) {
  Memory memory;
  on_ranks(
      config,
      [&](Engine& engine) {
        const schedule::RankPlan& plan = engine.plan();
        const std::int64_t tokens = config.model.seq_length * config.train.micro_batch_size;
        const std::vector<std::int64_t> declared =
            kept_after_each(plan.training, plan.anatomy, [&](const schedule::Node&) {
              return schedule::Load{.tokens = tokens,
                                    .rows = tokens * config.model.moe_router_topk};
            });
        const Batch batch = batch_of(engine, 0);
        Program& program = engine.program();
        const std::int64_t before = live_bytes(engine);
        engine.pool().reset_peaks();
        program.begin({.batch = batch});
        const std::int64_t inputs = live_bytes(engine) - before;
        std::size_t issued = 0;
        engine.training().run(
            [&](const schedule::Node& node, tensor::Stream& stream) {
              program.run(node, stream);
              const bool forward_ends = node.piece == Piece::Head &&
                                        node.direction == schedule::Direction::F &&
                                        node.micro_batch == 0;
              if (forward_ends) {
                memory.kept = live_bytes(engine) - before - inputs;
                memory.declared = declared[issued];
              }
              ++issued;
            },
            exec::Tracing::Off);
        memory.peak = static_cast<std::int64_t>(engine.pool().use(tensor::Tag::Activations).peak);
        memory.left = live_bytes(engine) - before;
      },
      detail);
  return memory;
}

TEST(Parts, KeepWhatIsDeclaredAndPeakAsTheirPieces) {
  for (const config::Config& config : models()) {
    const Memory whole = memory_of(config, {}), split = memory_of(config, {kAll, {}});
    EXPECT_EQ(whole.kept, whole.declared);
    EXPECT_EQ(split.kept, split.declared);
    EXPECT_EQ(split.kept, whole.kept);
    EXPECT_EQ(split.peak, whole.peak);
    EXPECT_EQ(split.left, 0);
  }
}

TEST(Recompute, KeepsLessAndAsMuchAsIsDeclared) {
  for (const config::Config& config : models()) {
    const Memory plain = memory_of(config, {});
    for (const Recomputed& again : kRecomputed) {
      SCOPED_TRACE(again.name);
      const Memory memory = memory_of(config, again.detail);
      EXPECT_EQ(memory.kept, memory.declared);
      EXPECT_LT(memory.kept, plain.kept);
      EXPECT_LT(memory.peak, plain.peak);
      EXPECT_EQ(memory.left, 0);
    }
  }
}

}  // namespace parts_test
}  // namespace weft::train
