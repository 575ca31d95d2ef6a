// Optimizer state in host memory: bits equal those of device state for any layout, fraction and
// order; bytes are as declared; checkpoints are interchangeable.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <mutex>

#include "tests/train/train_support.h"
#include "weft/derive/memory/optimizer_offload.h"
#include "weft/train/guard/memory_prediction.h"
#include "weft/train/saves/checkpoints.h"
#include "weft/train/saves/state_list.h"

namespace weft::train {
namespace offloaded_optimizer_test {

namespace fs = std::filesystem;
using base::DType;
using config::Config;

Config offloaded(Config config, double fraction, bool overlaps, std::int64_t bucket_size = 1000) {
  config.optimizer.optimizer_cpu_offload = true;
  config.optimizer.optimizer_offload_fraction = fraction;
  config.optimizer.overlap_cpu_optimizer_d2h_h2d = overlaps;
  config.runtime.optimizer_offload_bucket_size = bucket_size;
  return config;
}

struct Case {
  std::string name;
  LayoutCase layout;
  DType precision = DType::F32;
  bool distributed = false, gathers_ahead = false, under_optimizer = false;
};

std::ostream& operator<<(std::ostream& out, const Case& value) { return out << value.name; }

Config config_of(const Case& c) {
  Config config = with_layout(c.layout.pp > 1 ? deep_config() : small_config(), c.layout);
  config.model.params_dtype = c.precision;
  config.model.share_embeddings_and_output_weights = true;
  config.model.moe_router_score_function = config::ScoreFunction::Sigmoid;
  config.model.moe_router_enable_expert_bias = true;
  if (c.distributed) {
    config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
  }
  if (c.gathers_ahead) {
    config.ddp.overlap_grad_reduce = config.ddp.overlap_param_gather = true;
    config.comm_overlap.overlap_grad_reduce = config.comm_overlap.overlap_param_gather = true;
    config.optimizer.overlap_param_gather = true;
    config.ddp.bucket_size = config.comm_overlap.bucket_size = 3000;
  }
  config.comm_overlap.overlap_param_gather_with_optimizer_step =
      config.optimizer.overlap_param_gather_with_optimizer_step = c.under_optimizer;
  return config;
}

std::vector<Case> cases() {
  return {{.name = "One", .layout = {}},
          {.name = "OneBf16", .layout = {}, .precision = DType::BF16},
          {.name = "Ep2", .layout = {.world = 2, .ep = 2}, .precision = DType::BF16},
          {.name = "Tp2", .layout = {.world = 2, .tp = 2}},
          {.name = "Dp2", .layout = {.world = 2}, .distributed = true},
          {.name = "Dp4Ep2Ahead",
           .layout = {.world = 4, .ep = 2},
           .precision = DType::BF16,
           .distributed = true,
           .gathers_ahead = true},
          {.name = "Pp2", .layout = {.world = 2, .pp = 2}, .precision = DType::BF16},
          {.name = "Pp2Vpp2Dp2",
           .layout = {.world = 4, .pp = 2, .vpp = 2},
           .distributed = true,
           .gathers_ahead = true,
           .under_optimizer = true}};
}

class OffloadedOptimizer : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Layouts,
                         OffloadedOptimizer,
                         ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(OffloadedOptimizer, HasTheBitsOfStateThatStays) {
  constexpr std::int64_t kSteps = 3;
  const Config plain = with_few_micro_batches(config_of(GetParam()));
  const Outcome expected = train_some(plain, kSteps);
  for (const double fraction : {0.3, 1.0}) {
    for (const bool overlaps : {false, true}) {
      SCOPED_TRACE(testing::Message() << fraction << (overlaps ? ", overlapped" : ", one by one"));
      expect_same_bits(train_some(offloaded(plain, fraction, overlaps), kSteps), expected);
    }
  }
}

TEST(OffloadedOptimizerMemory, MovesItsBytesFromTheDeviceToTheHost) {
  const auto use = [](const Config& config) {
    std::pair<std::size_t, std::size_t> bytes;
    on_ranks(config, [&](Engine& engine) {
      bytes = {engine.pool().use(tensor::Tag::Optimizer).bytes,
               engine.pool().use(tensor::Tag::Offloaded).bytes};
    });
    return bytes;
  };
  for (const DType precision : {DType::F32, DType::BF16}) {
    Config config = small_config();
    config.model.params_dtype = precision;
    const auto [optimizer, nothing] = use(config);
    EXPECT_EQ(nothing, 0u);
    const std::size_t state = precision == DType::F32 ? 8 : 12;
    const std::size_t staged = precision == DType::F32 ? 4 : 6;
    const auto [left, there] = use(offloaded(config, 1, true, 1 << 20));
    EXPECT_EQ(left, 0u);
    const std::size_t parameters = optimizer / state;
    EXPECT_GT(there, 12 * parameters);
    EXPECT_LE(there, (12 + 2 * staged) * parameters) << "two slots, none larger than all of it";
    const auto [kept, half] = use(offloaded(config, 0.5, false));
    EXPECT_NEAR(double(kept), double(optimizer) / 2, 64 * double(state) * 2);
    EXPECT_NEAR(double(half), 6.0 * double(parameters) + 1024 * double(staged), 64 * 12 * 3);
  }
}

// Totals are of device memory; offloaded bytes are predicted separately.
TEST(OffloadedOptimizerMemory, IsPredictedToTheByteAndNoPartOfTheTotal) {
  for (const DType precision : {DType::F32, DType::BF16}) {
    Config config = with_layout(small_config(), {.world = 2});
    config.model.params_dtype = precision;
    config.train.eval_interval = 0;
    config = offloaded(config, 0.7, true);
    const PredictedMemory predicted = predict_memory(judged(config)).front();
    EXPECT_EQ(total_of(predicted.at_peak.bytes), predicted.peak_total_bytes);
    on_ranks(config, [&](Engine& engine) {
      const Progress progress(engine.pool(), config.rng.seed);
      for (std::int64_t step = 0; step < 2; ++step) {
        const Batch batch = batch_of(engine, step);
        train_step(engine, {.batch = batch, .step = step}, exec::Tracing::Off);
      }
      for (int tag = 0; tag < tensor::kTags; ++tag) {
        EXPECT_EQ(engine.pool().use(static_cast<tensor::Tag>(tag)).peak,
                  predicted.peak_bytes[static_cast<std::size_t>(tag)])
            << tensor::name_of(static_cast<tensor::Tag>(tag));
      }
      EXPECT_EQ(engine.pool().total().peak, predicted.peak_total_bytes);
    });
  }
}

TEST(OffloadedOptimizerSteps, OneThatIsNotFiniteChangesNothing) {
  for (const DType precision : {DType::F32, DType::BF16}) {
    Config config = small_config();
    config.model.params_dtype = precision;
    on_ranks(offloaded(config, 1, true), [&](Engine& engine) {
      const Batch batch = batch_of(engine, 0);
      const auto state = [&] {
        std::vector<std::vector<float>> all;
        for (const OptimizerShare& share : engine.optimizers()) {
          all.push_back(floats_of(engine, share.adamw.weights()));
          all.push_back(floats_of(engine, share.adamw.master()));
          all.push_back(floats_of(engine, share.adamw.moment2()));
        }
        return all;
      };
      train_step(engine, {.batch = batch, .learning_rate = 1e-2}, exec::Tracing::Off);
      const auto before = state();
      train_step(engine,
                 {.batch = batch, .step = 1, .learning_rate = 1e-2, .fails = true},
                 exec::Tracing::Off);
      EXPECT_EQ(state(), before);
      train_step(engine, {.batch = batch, .step = 1, .learning_rate = 1e-2}, exec::Tracing::Off);
      EXPECT_NE(state(), before);
    });
  }
}

// A traced step shows transfers on the copy lanes and the update on the host lane.
TEST(OffloadedOptimizerSteps, AreTracedOnTheirLanes) {
  on_ranks(offloaded(small_config(), 1, true), [&](Engine& engine) {
    train_step(engine, {.batch = batch_of(engine, 0)}, exec::Tracing::On);
    std::map<std::string, std::string> lanes;
    for (const trace::Span& span : engine.training().take_spans()) {
      if (trace::is_node(span)) lanes[span.name] = span.lane;
    }
    for (const schedule::OffloadedAnatomy& one : engine.plan().anatomy.offloaded) {
      EXPECT_EQ(lanes[schedule::print(one.download())], "copy");
      EXPECT_EQ(lanes[schedule::print(one.update())], "host");
      EXPECT_EQ(lanes[schedule::print(one.upload())], "copy_in");
    }
  });
}

class OffloadedCheckpoints : public ::testing::Test {
 protected:
  OffloadedCheckpoints()
      : folder_(fs::path(::testing::TempDir()) / fmt::format("weft_offloaded_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~OffloadedCheckpoints() override { fs::remove_all(folder_); }

  // Losses from the beginning, or the checkpoint, to step `until`, where the run saves.
  std::vector<double> run(Config config, std::int64_t until) const {
    config.checkpoint.save = config.checkpoint.load = folder_.string();
    std::vector<double> losses;
    const std::optional<Resumption> from = find_resumption(config);
    on_ranks(config, [&](Engine& engine) {
      Progress progress(engine.pool(), config.rng.seed);
      if (from) load_checkpoint(engine, progress, *from);
      while (progress.step() < until) {
        const Batch batch = batch_of(engine, progress.step());
        const StepTotals totals =
            train_step(engine,
                       {.batch = batch, .step = progress.step(), .learning_rate = 1e-2},
                       exec::Tracing::Off);
        progress.advance(config.train.global_batch_size);
        if (engine.rank() == 0) losses.push_back(totals.loss);
      }
      EXPECT_EQ(save_checkpoint(engine, progress), std::nullopt);
    });
    return losses;
  }

  fs::path folder_;
};

// State and run are equal for any offloaded fraction.
TEST_F(OffloadedCheckpoints, GoFromOneFractionToAnother) {
  for (const DType precision : {DType::F32, DType::BF16}) {
    Config plain = with_layout(small_config(), {.world = 2});
    plain.model.params_dtype = precision;
    plain.ddp.use_distributed_optimizer = plain.optimizer.use_distributed_optimizer = true;
    const std::vector<double> expected = run(plain, 6);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::vector<double> losses;
    std::int64_t until = 0;
    for (const double fraction : {0.0, 1.0, 0.4, 0.0, 0.7, 0.7}) {
      const Config config = fraction > 0 ? offloaded(plain, fraction, true) : plain;
      for (const double loss : run(config, ++until)) losses.push_back(loss);
    }
    EXPECT_EQ(losses, expected);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
}

// Entries reference the state in host memory directly, and writing them adds to neither memory.
TEST_F(OffloadedCheckpoints, AreWrittenWithoutASecondCopy) {
  Config config = offloaded(small_config(), 1, true);
  config.model.params_dtype = DType::BF16;
  config.checkpoint.save = folder_.string();
  on_ranks(config, [&](Engine& engine) {
    const Progress progress(engine.pool(), config.rng.seed);
    std::size_t of_state = 0;
    for (const checkpoint::StateEntry& entry : state_list(engine, progress)) {
      if (!entry.name.starts_with("optimizer.")) continue;
      of_state += static_cast<std::size_t>(entry.tensor.bytes());
      EXPECT_TRUE(std::ranges::any_of(engine.optimizers(), [&](const OptimizerShare& share) {
        return entry.tensor.shares_block(share.adamw.moment1()) ||
               entry.tensor.shares_block(share.adamw.moment2()) ||
               entry.tensor.shares_block(share.adamw.master());
      })) << entry.name;
    }
    EXPECT_GT(of_state, 0u);
    EXPECT_EQ(engine.pool().use(tensor::Tag::Optimizer).bytes, 0u);
    EXPECT_GE(engine.pool().use(tensor::Tag::Offloaded).bytes, of_state);
    engine.pool().reset_peaks();
    const std::size_t offloaded = engine.pool().use(tensor::Tag::Offloaded).bytes;
    const std::size_t own = engine.pool().total().bytes;
    EXPECT_EQ(save_checkpoint(engine, progress), std::nullopt);
    EXPECT_EQ(engine.pool().use(tensor::Tag::Offloaded).peak, offloaded);
    // Messages between ranks about a checkpoint are small.
    EXPECT_LT(engine.pool().total().peak, own + of_state / 16);
  });
}

TEST(OffloadCut, BucketsCoverWhatIsOffloadedInNearlyEqualParts) {
  const derive::OptimizerOffload offload{.fraction = 0.3, .bucket_size = 1000};
  for (const std::int64_t share : {0, 1, 63, 64, 1000, 12345, 100000}) {
    const std::int64_t all = offload.elements(share);
    EXPECT_GE(double(all), 0.3 * double(share));
    EXPECT_LE(all, share);
    std::int64_t next = 0;
    for (const base::Range& bucket : offload.buckets(share)) {
      EXPECT_EQ(bucket.begin, next);
      EXPECT_LE(bucket.count, 1024);
      EXPECT_GT(bucket.count, 0);
      next += bucket.count;
    }
    EXPECT_EQ(next, all);
  }
}

}  // namespace offloaded_optimizer_test
}  // namespace weft::train
