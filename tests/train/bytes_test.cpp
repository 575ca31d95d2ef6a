// What the anatomy declares, against what the engine's pool and communicators count, to the byte.
#include <gtest/gtest.h>

#include <mutex>

#include "train_support.h"

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

std::int64_t ep_bytes(Engine& engine) {
  std::int64_t bytes = 0;
  for (const auto& [operation, traffic] : engine.groups().ep->traffic())
    bytes += traffic.bytes_sent;
  return bytes;
}

Counted count(const config::Config& config) {
  Counted sum;
  std::mutex mutex;
  on_ranks(config, [&](Engine& engine) {
    const Batch batch = batch_of(engine, 0);
    const schedule::RankPlan& plan = engine.plan();
    Counted own;
    own.kept = -live_bytes(engine);
    own.sent = -ep_bytes(engine);
    forward_pass(engine, batch);
    own.kept += live_bytes(engine);
    own.sent += ep_bytes(engine);
    for (int m = 0; m < plan.shape.micro_batches; ++m) {
      const model::MicroBatchState& state = engine.program().state(m);
      const std::int64_t tokens = state.ids_T.dim(0);
      own.declared_kept += 2 * tokens * 4;  // ids and labels, the step's own input
      own.declared_kept +=
          plan.anatomy.embed.kept.of(tokens, 0) + plan.anatomy.head.kept.of(tokens, 0);
      for (std::size_t layer = 0; layer < plan.anatomy.layers.size(); ++layer) {
        const model::Exchange& exchange = state.layers[layer].dispatch.plan;
        std::int64_t leaving = 0;
        for (std::size_t peer = 0; peer < exchange.send_rows.size(); ++peer) {
          if (static_cast<int>(peer) != engine.groups().self.ep)
            leaving += exchange.send_rows[peer];
        }
        std::int64_t returning = 0;
        for (std::size_t peer = 0; peer < exchange.receive_rows.size(); ++peer) {
          if (static_cast<int>(peer) != engine.groups().self.ep)
            returning += exchange.receive_rows[peer];
        }
        for (const schedule::PieceAnatomy& piece : plan.anatomy.layers[layer]) {
          own.declared_kept += piece.kept.of(tokens, exchange.received);
          const bool back = piece.piece == schedule::Piece::Combine;
          own.declared_sent_forward += piece.sent_forward.of(tokens, back ? returning : leaving);
          own.declared_sent_backward += piece.sent_backward.of(tokens, back ? leaving : returning);
        }
      }
    }
    const std::int64_t before = ep_bytes(engine);
    engine.program().drop_states();
    train_step(engine, {.batch = batch, .learning_rate = 0}, exec::Tracing::Off);
    own.declared_sent_backward += own.declared_sent_forward;
    EXPECT_EQ(ep_bytes(engine) - before, own.declared_sent_backward);
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

INSTANTIATE_TEST_SUITE_P(Ranks,
                         Bytes,
                         ::testing::Values(LayoutCase{},
                                           LayoutCase{.world = 2, .ep = 2},
                                           LayoutCase{.world = 8, .ep = 8}),
                         [](const auto& param_info) {
                           return fmt::format("World{}Ep{}",
                                              param_info.param.world,
                                              param_info.param.ep);
                         });

TEST(Memory, ATrainingStepLeavesNothingBehindAndPeaksRepeat) {
  on_ranks(with_layout(small_config(), {.world = 2, .ep = 2}), [](Engine& engine) {
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

}  // namespace
}  // namespace weft::train
