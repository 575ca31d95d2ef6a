#include "weft/optim/adamw.h"

#include <gtest/gtest.h>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/tensor/transfer.h"

namespace weft::optim {
namespace adamw_test {

using tensor::BFloat16;
using tensor::DType;
using tensor::Tag;

struct Plain {
  std::int64_t begin, count;
  Decay decay;
  bool operator==(const Plain&) const = default;
};

std::vector<Plain> joined(std::vector<Segment> segments, std::int64_t end) {
  std::vector<Plain> result;
  for (const Segment& segment : join_segments(std::move(segments), end)) {
    result.push_back({segment.begin, segment.count, segment.decay});
  }
  return result;
}

TEST(JoinSegments, NeighboursThatDecayAlikeBecomeOne) {
  EXPECT_EQ(joined({{0, 4, Decay::Yes}, {4, 6, Decay::Yes}, {10, 2, Decay::Yes}}, 12),
            (std::vector<Plain>{{0, 12, Decay::Yes}}));
}

TEST(JoinSegments, PaddingJoinsWhatPrecedes) {
  EXPECT_EQ(joined({{0, 3, Decay::Yes}, {16, 5, Decay::No}, {32, 1, Decay::No}}, 48),
            (std::vector<Plain>{{0, 16, Decay::Yes}, {16, 32, Decay::No}}));
}

TEST(JoinSegments, AlternatingOnesStayApart) {
  EXPECT_EQ(
      joined({{0, 4, Decay::No}, {4, 4, Decay::Yes}, {8, 4, Decay::No}, {16, 4, Decay::Yes}}, 20),
      (std::vector<Plain>{{0, 4, Decay::No},
                          {4, 4, Decay::Yes},
                          {8, 8, Decay::No},
                          {16, 4, Decay::Yes}}));
}

TEST(JoinSegments, NoneStayNone) { EXPECT_TRUE(join_segments({}, 0).empty()); }

constexpr std::int64_t kElements = 64;
const std::vector<Segment> kSegments{{0, 20, Decay::Yes},
                                     {24, 7, Decay::No},
                                     {32, 16, Decay::Yes},
                                     {48, 16, Decay::No}};

bool decays(std::int64_t i) { return i < 24 || (i >= 32 && i < 48); }

// AdamW in double precision, one weight at a time.
struct Reference {
  double weight = 0, moment1 = 0, moment2 = 0;

  void apply(const config::OptimizerConfig& config,
             double learning_rate,
             double gradient,
             double decay,
             int step) {
    moment1 = config.adam_beta1 * moment1 + (1 - config.adam_beta1) * gradient;
    moment2 = config.adam_beta2 * moment2 + (1 - config.adam_beta2) * gradient * gradient;
    const double mean = moment1 / (1 - std::pow(config.adam_beta1, step));
    const double square = moment2 / (1 - std::pow(config.adam_beta2, step));
    weight -= learning_rate * decay * weight;
    weight -= learning_rate * mean / (std::sqrt(square) + config.adam_eps);
  }
};

class AdamWTest : public ::testing::TestWithParam<DType> {
 protected:
  AdamWTest()
      : weights_(bench_.pool, GetParam(), {kElements}, Tag::Weights),
        gradients_(bench_.pool, DType::F32, {kElements}, Tag::Gradients),
        references_(kElements) {
    config_.weight_decay = 0.3;
    std::vector<float> start;
    for (std::uint64_t i = 0; i < kElements; ++i) {
      start.push_back(static_cast<float>(base::normal(1, i)));
    }
    tensor::write_floats(stream_, weights_, start);
    const std::vector<float> rounded = values_of(weights_);
    for (std::size_t i = 0; i < kElements; ++i) references_[i].weight = rounded[i];
  }

  std::vector<float> values_of(const Tensor& tensor) {
    return tensor::read_floats(stream_, tensor);
  }

  AdamW make_optimizer() { return {bench_.pool, stream_, weights_, gradients_, kSegments}; }

  static float gradient_at(std::int64_t i, int step) {
    return static_cast<float>(
        base::normal(100 + static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(i)));
  }

  // Steps the optimizer and the reference with equal gradients, and compares them.
  void expect_steps_equal(const AdamW& optimizer, int steps) {
    for (int step = 1; step <= steps; ++step) {
      const double learning_rate = 0.05 / step, scale = 0.5 + 0.125 * step;
      std::vector<float> gradients;
      for (std::int64_t i = 0; i < kElements; ++i) gradients.push_back(gradient_at(i, step));
      tensor::write<float>(stream_, gradients_, gradients);
      optimizer.apply(stream_, config_, {learning_rate, scale, step});
      const std::vector<float> master = values_of(optimizer.master());
      const std::vector<float> moment1 = values_of(optimizer.moment1());
      const std::vector<float> moment2 = values_of(optimizer.moment2());
      EXPECT_EQ(values_of(gradients_), gradients);
      for (std::int64_t i = 0; i < kElements; ++i) {
        Reference& reference = references_[static_cast<std::size_t>(i)];
        const bool all = config_.weight_decay_scope == config::DecayScope::All;
        reference.apply(config_,
                        learning_rate,
                        static_cast<double>(gradient_at(i, step)) * scale,
                        all || decays(i) ? config_.weight_decay : 0,
                        step);
        const auto at = static_cast<std::size_t>(i);
        ASSERT_NEAR(master[at], reference.weight, 2e-6) << i;
        ASSERT_NEAR(moment1[at], reference.moment1, 1e-6) << i;
        ASSERT_NEAR(moment2[at], reference.moment2, 1e-6) << i;
      }
    }
  }

  devices::Workbench bench_;
  tensor::Stream& stream_ = *bench_.stream;
  Tensor weights_, gradients_;
  std::vector<Reference> references_;
  config::OptimizerConfig config_;
};

INSTANTIATE_TEST_SUITE_P(Weights,
                         AdamWTest,
                         ::testing::Values(DType::F32, DType::BF16),
                         [](const auto& test) { return std::string(tensor::name_of(test.param)); });

TEST_P(AdamWTest, EqualsDoublePrecisionAndLeavesGradientsAsTheyAre) {
  const AdamW optimizer = make_optimizer();
  expect_steps_equal(optimizer, 5);
}

TEST_P(AdamWTest, DecayScopeAllDecaysEverything) {
  config_.weight_decay_scope = config::DecayScope::All;
  const AdamW optimizer = make_optimizer();
  expect_steps_equal(optimizer, 3);
}

TEST_P(AdamWTest, WeightsAreTheMasterRoundedOnce) {
  const AdamW optimizer = make_optimizer();
  expect_steps_equal(optimizer, 3);
  int differ = 0;
  const std::vector<float> masters = values_of(optimizer.master()), weights = values_of(weights_);
  for (std::size_t i = 0; i < kElements; ++i) {
    const float master = masters[i];
    const float rounded = GetParam() == DType::F32 ? master : static_cast<float>(BFloat16(master));
    EXPECT_EQ(weights[i], rounded);
    differ += rounded != master ? 1 : 0;
  }
  EXPECT_EQ(differ > 0, GetParam() == DType::BF16) << "the master holds what bf16 cannot";
}

TEST_P(AdamWTest, WithoutGradientOnlyWhatDecaysChanges) {
  config_.weight_decay = 2;
  kernels::zero(stream_, gradients_);
  const AdamW optimizer = make_optimizer();
  optimizer.apply(stream_, config_, {.learning_rate = 0.25});
  const std::vector<float> weights = values_of(weights_);
  for (std::int64_t i = 0; i < kElements; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double start = references_[at].weight;
    EXPECT_EQ(weights[at], decays(i) ? start / 2 : start) << i;
  }
}

TEST_P(AdamWTest, RefreshMasterTakesWeightsSetFromOutside) {
  AdamW optimizer = make_optimizer();
  tensor::write_floats(stream_, weights_, std::vector<float>(kElements, 0.75f));
  references_.assign(kElements, {.weight = 0.75});
  optimizer.refresh_master(stream_);
  expect_steps_equal(optimizer, 2);
}

TEST(AdamW, KeepsItsStateInTheDtypesAskedFor) {
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor weights(pool, DType::BF16, {kElements}, Tag::Weights);
  const Tensor gradients(pool, DType::F32, {kElements}, Tag::Gradients);
  tensor::write_floats(*stream, weights, std::vector<float>(kElements, 0.75f));
  tensor::write<float>(*stream, gradients, std::vector<float>(kElements, 0.1f));
  AdamW optimizer(pool,
                  *stream,
                  weights,
                  gradients,
                  kSegments,
                  {.moment1 = DType::BF16, .moment2 = DType::F16, .master = DType::I16});
  EXPECT_EQ(pool.use(Tag::Optimizer).bytes, std::size_t{6 * kElements});
  const std::vector<std::int16_t> none(kElements);
  EXPECT_EQ(tensor::read<std::int16_t>(*stream, optimizer.master()), none);
  optimizer.apply(*stream, {}, {.learning_rate = 1e-5});
  EXPECT_EQ(tensor::read_floats(*stream, weights), std::vector<float>(kElements, 0.75f));
  EXPECT_NE(tensor::read<std::int16_t>(*stream, optimizer.master()), none)
      << "a step that no bf16 weight shows";
  optimizer.refresh_master(*stream);
  EXPECT_EQ(tensor::read<std::int16_t>(*stream, optimizer.master()), none);
}

TEST(AdamW, AnEmptyBufferHasNothingToDo) {
  devices::Workbench bench;
  auto& [device, pool, stream] = bench;
  const AdamW optimizer(pool,
                        *stream,
                        Tensor(pool, DType::BF16, {0}, Tag::Weights),
                        Tensor(pool, DType::F32, {0}, Tag::Gradients),
                        {});
  optimizer.apply(*stream, {}, {.learning_rate = 1e-3});
  EXPECT_EQ(optimizer.moment1().elements(), 0);
}

// State of some hundred weights after a few steps.
using State = std::vector<std::vector<float>>;

State state_of(tensor::Stream& stream, const AdamW& optimizer) {
  State state;
  for (const Tensor& part :
       {optimizer.weights(), optimizer.master(), optimizer.moment1(), optimizer.moment2()}) {
    state.push_back(tensor::read_floats(stream, part));
  }
  return state;
}

std::vector<float> drawn(std::uint64_t seed, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(base::normal(seed, static_cast<std::uint64_t>(i))));
  }
  return values;
}

constexpr std::int64_t kMany = 1000;
const std::vector<Segment> kManySegments{{0, 300, Decay::Yes},
                                         {300, 77, Decay::No},
                                         {377, 623, Decay::Yes}};
const config::OptimizerConfig kManyConfig{.weight_decay = 0.3};

struct Many {
  Many(devices::Workbench& bench, DType dtype)
      : weights(bench.pool, dtype, {kMany}, Tag::Weights),
        gradients(bench.pool, DType::F32, {kMany}, Tag::Gradients) {
    tensor::write_floats(*bench.stream, weights, drawn(1, kMany));
  }
  Tensor weights, gradients;
};

Applied step_of(std::int64_t step) {
  return {.learning_rate = 0.01, .gradient_scale = 0.7, .step = step};
}

TEST_P(AdamWTest, HasTheSameBitsOnEveryDevice) {
  State expected;
  for (const devices::DeviceKind kind : devices::all_devices()) {
    devices::Workbench bench(1, kind);
    Many many(bench, GetParam());
    const AdamW optimizer(bench.pool, *bench.stream, many.weights, many.gradients, kManySegments);
    for (std::int64_t step = 1; step <= 4; ++step) {
      tensor::write_floats(*bench.stream,
                           many.gradients,
                           drawn(10 + static_cast<std::uint64_t>(step), kMany));
      optimizer.apply(*bench.stream, kManyConfig, step_of(step));
    }
    const State state = state_of(*bench.stream, optimizer);
    if (expected.empty()) expected = state;
    EXPECT_EQ(state, expected) << devices::name_of(kind);
  }
}

// In parts that cut segments, from gradients in other memory.
TEST_P(AdamWTest, OffloadedHasTheSameBits) {
  devices::Workbench bench;
  auto& stream = *bench.stream;
  Many here(bench, GetParam()), there(bench, GetParam());
  const AdamW plain(bench.pool, stream, here.weights, here.gradients, kManySegments);
  const AdamW offloaded =
      AdamW::offloaded(bench.pool, stream, stream, there.weights, there.gradients, kManySegments);
  EXPECT_EQ(offloaded.master_is_copy(), GetParam() == DType::F32);
  const Tensor room = Tensor::host_visible(bench.pool, GetParam(), {kMany}, Tag::Offloaded);
  const Tensor brought = Tensor::host_visible(bench.pool, DType::F32, {kMany}, Tag::Offloaded);
  for (std::int64_t step = 1; step <= 3; ++step) {
    tensor::write_floats(stream,
                         here.gradients,
                         drawn(20 + static_cast<std::uint64_t>(step), kMany));
    plain.apply(stream, kManyConfig, step_of(step));
    for (const Range& part : {Range{0, 64}, Range{64, 256}, Range{320, 680}}) {
      const Tensor gradients = brought.range(0, {part.count});
      kernels::copy(stream, gradients, here.gradients.range(part.begin, {part.count}));
      const Tensor made = offloaded.new_weights(part, room);
      offloaded.apply_on_host(stream, kManyConfig, step_of(step), part, gradients, made);
      kernels::copy(stream, there.weights.range(part.begin, {part.count}), made);
    }
  }
  EXPECT_EQ(state_of(stream, offloaded), state_of(stream, plain));
}

}  // namespace adamw_test
}  // namespace weft::optim
