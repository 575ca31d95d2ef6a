// Ranks that share the optimizer's work give equal bits with any buckets at any time, and take the
// bytes of the formulas.
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>

#include "tests/train/train_support.h"
#include "weft/derive/memory/parameter_buffers.h"

namespace weft::train {
namespace data_parallel_test {

using config::Config;
using model::Home;

enum class Overlap { None, Reduce, All, Aligned, UnderOptimizer };

Config distributed(Config config, Overlap overlap, std::int64_t bucket_size = 0) {
  config.ddp.use_distributed_optimizer = config.optimizer.use_distributed_optimizer = true;
  const bool reduces = overlap != Overlap::None;
  const bool gathers = reduces && overlap != Overlap::Reduce;
  const bool under = overlap == Overlap::UnderOptimizer, aligned = overlap == Overlap::Aligned;
  config.comm_overlap.overlap_grad_reduce = config.ddp.overlap_grad_reduce = reduces;
  config.comm_overlap.overlap_param_gather = config.ddp.overlap_param_gather =
      config.optimizer.overlap_param_gather = gathers;
  config.comm_overlap.overlap_param_gather_with_optimizer_step =
      config.optimizer.overlap_param_gather_with_optimizer_step = under;
  config.comm_overlap.align_param_gather = config.ddp.align_param_gather = aligned;
  if (bucket_size > 0) config.comm_overlap.bucket_size = config.ddp.bucket_size = bucket_size;
  return config;
}

struct Case {
  LayoutCase layout;
  bool tied = false;
  base::DType precision = base::DType::F32;
};

Config config_of(const Case& c) {
  Config config = with_layout(c.layout.pp > 1 ? deep_config() : small_config(), c.layout);
  config.model.share_embeddings_and_output_weights = c.tied;
  config.model.params_dtype = c.precision;
  config.model.moe_aux_loss_coeff = {0.02};
  return config;
}

class DistributedOptimizer : public ::testing::TestWithParam<Case> {};

TEST_P(DistributedOptimizer, HasTheBitsOfWholeOnesWhateverTheBucketsAndTheirTime) {
  constexpr std::int64_t kSteps = 3;
  const Config plain = config_of(GetParam());
  const Outcome expected = train_some(plain, kSteps);
  Config reduced = plain;
  reduced.ddp.overlap_grad_reduce = true;
  reduced.ddp.bucket_size = 2000;
  expect_same_bits(train_some(reduced, kSteps), expected);
  expect_same_bits(train_some(distributed(plain, Overlap::None), kSteps), expected);
  expect_same_bits(train_some(distributed(plain, Overlap::Reduce, 2000), kSteps), expected);
  for (const std::int64_t bucket_size : {1, 5000, 1'000'000}) {
    SCOPED_TRACE(bucket_size);
    expect_same_bits(train_some(distributed(plain, Overlap::All, bucket_size), kSteps), expected);
  }
  if (GetParam().layout.vpp == 1) return;
  expect_same_bits(train_some(distributed(plain, Overlap::Aligned), kSteps), expected);
  expect_same_bits(train_some(distributed(plain, Overlap::UnderOptimizer), kSteps), expected);
}

INSTANTIATE_TEST_SUITE_P(Ranks,
                         DistributedOptimizer,
                         ::testing::ValuesIn(third_or_all<Case>(
                             {Case{.layout = {.world = 2}},
                              Case{.layout = {.world = 2}, .precision = base::DType::BF16},
                              Case{.layout = {.world = 4}, .tied = true},
                              Case{.layout = {.world = 4, .ep = 2}},
                              Case{.layout = {.world = 4, .tp = 2}, .tied = true},
                              Case{.layout = {.world = 4, .pp = 2}, .tied = true},
                              Case{.layout = {.world = 4, .pp = 2, .vpp = 2},
                                   .tied = true,
                                   .precision = base::DType::BF16}},
                             1)),
                         [](const auto& test) {
                           const bool bf16 = test.param.precision == base::DType::BF16;
                           return name_of(test.param.layout) + (test.param.tied ? "Tied" : "") +
                                  (bf16 ? "Bf16" : "");
                         });

TEST(DataParallel, EqualsTheOneRankRun) {
  Config config = small_config();
  config.model.share_embeddings_and_output_weights = true;
  const std::int64_t steps = few_or_many(4, 12);
  const Outcome one = train_some(config, steps);
  for (const LayoutCase& layout : {LayoutCase{.world = 4}, LayoutCase{.world = 4, .ep = 2}}) {
    Config many = distributed(with_layout(config, layout), Overlap::All, 3000);
    for (const bool average : {false, true}) {
      many.ddp.average_in_collective = average;
      const Outcome found = train_some(many, steps);
      for (std::size_t i = 0; i < found.losses.size(); ++i) {
        EXPECT_NEAR(found.losses[i], one.losses[i], 5e-6 * one.losses[i]) << "step " << i;
        EXPECT_NEAR(found.gradient_norms[i], one.gradient_norms[i], 2e-5 * one.gradient_norms[i]);
      }
      for (const auto& [name, values] : one.weights) {
        const std::vector<float> zeros(values.size());
        EXPECT_LT(largest_difference(found.weights.at(name), values),
                  2e-4 * largest_difference(values, zeros))
            << name;
      }
    }
  }
}

TEST(DataParallel, AnEvaluationSeesTheNewWeights) {
  const Config plain = with_layout(small_config(), {.world = 2});
  std::vector<double> losses;
  for (const Config& config : {plain, distributed(plain, Overlap::All, 3000)}) {
    on_ranks(config, [&](Engine& engine) {
      for (std::int64_t step = 0; step < 2; ++step) {
        const Batch batch = batch_of(engine, step);
        train_step(engine,
                   {.batch = batch, .step = step, .learning_rate = 1e-2},
                   exec::Tracing::Off);
      }
      const StepTotals totals = forward_step(engine, batch_of(engine, 7));
      if (engine.rank() == 0) losses.push_back(totals.loss);
    });
  }
  EXPECT_EQ(losses.at(0), losses.at(1));
}

// Elements of a home with the reference's padding: each parameter to 64, each bucket to lcm(ranks,
// 128). A bucket is full when a parameter reaches its size, or before exceeding a sixteenth of all.
// 0: a single bucket.
std::int64_t padded(const model::Parameters& parameters,
                    Home home,
                    std::int64_t ranks,
                    std::int64_t bucket_size) {
  std::int64_t elements = 0, bucket = 0, all = 0;
  for (const model::Parameter& p : parameters.all()) {
    if (p.spec.home == home) all += p.weight.elements();
  }
  const std::int64_t most = (all + 15) / 16;
  const auto up_to = [](std::int64_t n, std::int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
  };
  const auto close = [&] {
    elements += up_to(bucket, std::lcm<std::int64_t>(ranks, 128));
    bucket = 0;
  };
  for (auto p = parameters.all().rbegin(); p != parameters.all().rend(); ++p) {
    if (p->spec.home != home) continue;
    const bool is_too_much = up_to(bucket, 64) + p->weight.elements() > most;
    if (bucket_size > 0 && bucket > 0 && is_too_much) close();
    bucket = up_to(bucket, 64) + p->weight.elements();
    if (bucket_size > 0 && bucket >= bucket_size) close();
  }
  close();
  return elements;
}

struct StateCase {
  LayoutCase layout;
  int cp = 1;
  std::int64_t bucket_size = 0;
};

// 6 + 12 / d bytes per parameter in bf16, 8 + 8 / d in fp32; ranks that share sequences also share
// the optimizer.
void expect_bytes_of_the_formulas(const StateCase& c, base::DType precision) {
  const LayoutCase& layout = c.layout;
  Config config = with_layout(layout.pp > 1 ? deep_config() : small_config(), layout);
  config.model.context_parallel_size = c.cp;
  config.train.global_batch_size = 12;
  config.model.params_dtype = precision;
  const Overlap overlap = c.bucket_size > 0 ? Overlap::All : Overlap::None;
  on_ranks(distributed(config, overlap, c.bucket_size), [&](Engine& engine) {
    const std::int64_t dp = layout.world / layout.tp / layout.pp;
    const std::int64_t edp = layout.world / layout.ep / layout.etp / layout.pp;
    const model::Parameters& all = engine.parameters();
    const std::int64_t dense = padded(all, Home::Dense, dp, c.bucket_size);
    const std::int64_t expert = edp == 1 ? all.buffer(Home::Expert).layout.elements
                                         : padded(all, Home::Expert, edp, c.bucket_size);
    if (c.bucket_size > 0) {
      EXPECT_GT(all.buffer(Home::Dense).layout.buckets.size(), 2u);
    }
    const bool bf16 = precision == base::DType::BF16;
    const std::int64_t state = bf16 ? 12 : 8;
    const auto bytes = [&](tensor::Tag tag) {
      return static_cast<std::int64_t>(engine.pool().use(tag).bytes);
    };
    EXPECT_EQ(bytes(tensor::Tag::Weights), (bf16 ? 2 : 4) * (dense + expert));
    EXPECT_EQ(bytes(tensor::Tag::Gradients), 4 * (dense + expert));
    EXPECT_EQ(bytes(tensor::Tag::Optimizer), state * (dense / dp + expert / edp));
  });
}

TEST(DataParallel, StateHasTheBytesOfTheFormulas) {
  const LayoutCase folded{.world = 8, .ep = 2, .tp = 2, .pp = 2, .etp = 2};
  for (const base::DType precision : {base::DType::F32, base::DType::BF16}) {
    for (const StateCase& c : {StateCase{.layout = {.world = 2}},
                               StateCase{.layout = {.world = 3}},
                               StateCase{.layout = {.world = 4, .ep = 2}},
                               StateCase{.layout = {.world = 4, .tp = 2}},
                               StateCase{.layout = {.world = 4, .pp = 2}},
                               StateCase{.layout = folded},
                               StateCase{.layout = {.world = 4, .ep = 2}, .cp = 2},
                               StateCase{.layout = {.world = 3}, .bucket_size = 300},
                               StateCase{.layout = {.world = 3}, .bucket_size = 3000},
                               StateCase{.layout = {.world = 4}, .cp = 2, .bucket_size = 5000},
                               StateCase{.layout = {.world = 4, .ep = 2}, .bucket_size = 3000}}) {
      SCOPED_TRACE(name_of(c.layout));
      expect_bytes_of_the_formulas(c, precision);
    }
  }
}

// Bytes sent by a step: a reduction sends all of a bucket except the rank's own part, a gather the
// own part to all others.
TEST(DataParallel, AStepSendsEveryBucketOnceEachWay) {
  const Config config = distributed(with_layout(small_config(), {.world = 4}), Overlap::All, 5000);
  on_ranks(config, [](Engine& engine) {
    const comm::Communicator& group = *engine.groups().dense_reduction;
    train_step(engine, {.batch = batch_of(engine, 0)}, exec::Tracing::Off);
    const std::int64_t elements = engine.parameters().buffer(Home::Dense).layout.elements;
    const std::int64_t buckets = std::ssize(engine.parameters().buffer(Home::Dense).layout.buckets);
    EXPECT_GT(buckets, 2);
    for (const comm::Operation operation :
         {comm::Operation::ReduceScatter, comm::Operation::AllGather}) {
      const comm::Traffic traffic = group.traffic().at(operation);
      EXPECT_EQ(traffic.calls, buckets);
      EXPECT_EQ(traffic.bytes_sent, 4 * elements * 3 / 4);
    }
  });
}

Config in_bf16(const LayoutCase& layout) {
  return config_of({.layout = layout, .precision = base::DType::BF16});
}

Config narrow(Config config) {
  config.ddp.grad_reduce_in_fp32 = false;
  return config;
}

TEST(NarrowGradients, AreNearTheWideOnes) {
  constexpr std::int64_t kSteps = 4;
  for (const LayoutCase& layout :
       {LayoutCase{.world = 4, .ep = 2}, LayoutCase{.world = 4, .tp = 2}}) {
    const Outcome wide = train_some(in_bf16(layout), kSteps);
    const Outcome found = train_some(narrow(in_bf16(layout)), kSteps);
    // Later norms belong to other weights.
    const double first = found.gradient_norms.front(), expected = wide.gradient_norms.front();
    EXPECT_NE(first, expected) << "nothing was rounded";
    EXPECT_NEAR(first, expected, 5e-4 * expected);
    for (std::size_t i = 0; i < found.losses.size(); ++i) {
      EXPECT_NEAR(found.losses[i], wide.losses[i], 2e-3 * wide.losses[i]) << "step " << i;
    }
  }
}

TEST(NarrowGradients, HaveTheSameBitsWheneverTheyTravel) {
  const Config plain = narrow(in_bf16({.world = 4, .pp = 2, .vpp = 2}));
  const Outcome expected = train_some(plain, 2);
  expect_same_bits(train_some(distributed(plain, Overlap::None), 2), expected);
  expect_same_bits(train_some(distributed(plain, Overlap::All, 3000), 2), expected);
}

// fp32 would take 4 bytes per element.
TEST(NarrowGradients, TravelInTwoBytesAndLeaveNothing) {
  using comm::Operation;
  const Config whole = narrow(in_bf16({.world = 4}));
  for (const Config& config : {whole, distributed(whole, Overlap::Reduce, 5000)}) {
    const bool is_shared = config.ddp.use_distributed_optimizer;
    on_ranks(config, [&](Engine& engine) {
      const auto held = [&] { return engine.pool().use(tensor::Tag::Communication).bytes; };
      const std::size_t before = held();
      train_step(engine, {.batch = batch_of(engine, 0)}, exec::Tracing::Off);
      const std::int64_t elements = engine.parameters().buffer(Home::Dense).layout.elements;
      const auto sent = engine.groups().dense_reduction->traffic().at(
          is_shared ? Operation::ReduceScatter : Operation::AllReduce);
      EXPECT_EQ(sent.bytes_sent, 2 * elements * 3 / 4 * (is_shared ? 1 : 2));
      EXPECT_EQ(held(), before);
    });
  }
}

}  // namespace data_parallel_test
}  // namespace weft::train
