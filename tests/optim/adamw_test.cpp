#include "weft/optim/adamw.h"

#include <gtest/gtest.h>

#include "weft/base/random.h"

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
      : stream_(tensor::make_cpu_stream("compute", 1, tensor::StreamMode::Inline)),
        weights_(pool_, GetParam(), {kElements}, Tag::Weights),
        gradients_(pool_, DType::F32, {kElements}, Tag::Gradients),
        references_(kElements) {
    config_.weight_decay = 0.3;
    for (std::int64_t i = 0; i < kElements; ++i) {
      const float weight = static_cast<float>(base::normal(1, static_cast<std::uint64_t>(i)));
      if (GetParam() == DType::F32) {
        weights_.host<float>()[i] = weight;
      } else {
        weights_.host<BFloat16>()[i] = BFloat16(weight);
      }
      references_[static_cast<std::size_t>(i)].weight = weight_at(i);
    }
  }

  double weight_at(std::int64_t i) const {
    return GetParam() == DType::F32 ? weights_.host<float>()[i]
                                    : static_cast<float>(weights_.host<BFloat16>()[i]);
  }

  static float gradient_at(std::int64_t i, int step) {
    return static_cast<float>(
        base::normal(100 + static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(i)));
  }

  // Steps the optimizer and the reference with the same gradients, and compares them.
  void expect_steps_equal(const AdamW& optimizer, int steps) {
    for (int step = 1; step <= steps; ++step) {
      const double learning_rate = 0.05 / step, scale = 0.5 + 0.125 * step;
      for (std::int64_t i = 0; i < kElements; ++i)
        gradients_.host<float>()[i] = gradient_at(i, step);
      optimizer.apply(*stream_, config_, learning_rate, scale, step);
      for (std::int64_t i = 0; i < kElements; ++i) {
        Reference& reference = references_[static_cast<std::size_t>(i)];
        const bool all = config_.weight_decay_scope == config::DecayScope::All;
        reference.apply(config_,
                        learning_rate,
                        static_cast<double>(gradient_at(i, step)) * scale,
                        all || decays(i) ? config_.weight_decay : 0,
                        step);
        ASSERT_NEAR(optimizer.master().host<float>()[i], reference.weight, 2e-6) << i;
        ASSERT_NEAR(optimizer.moment1().host<float>()[i], reference.moment1, 1e-6) << i;
        ASSERT_NEAR(optimizer.moment2().host<float>()[i], reference.moment2, 1e-6) << i;
        ASSERT_EQ(gradients_.host<float>()[i], 0.0f) << i;
      }
    }
  }

  tensor::Pool pool_;
  std::unique_ptr<tensor::Stream> stream_;
  Tensor weights_, gradients_;
  std::vector<Reference> references_;
  config::OptimizerConfig config_;
};

INSTANTIATE_TEST_SUITE_P(Weights,
                         AdamWTest,
                         ::testing::Values(DType::F32, DType::BF16),
                         [](const auto& test) { return std::string(tensor::name_of(test.param)); });

TEST_P(AdamWTest, EqualsDoublePrecisionAndLeavesGradientsZero) {
  const AdamW optimizer(pool_, weights_, gradients_, kSegments);
  expect_steps_equal(optimizer, 5);
}

TEST_P(AdamWTest, DecayScopeAllDecaysEverything) {
  config_.weight_decay_scope = config::DecayScope::All;
  const AdamW optimizer(pool_, weights_, gradients_, kSegments);
  expect_steps_equal(optimizer, 3);
}

TEST_P(AdamWTest, WeightsAreTheMasterRoundedOnce) {
  const AdamW optimizer(pool_, weights_, gradients_, kSegments);
  expect_steps_equal(optimizer, 3);
  int differ = 0;
  for (std::int64_t i = 0; i < kElements; ++i) {
    const float master = optimizer.master().host<float>()[i];
    const float rounded = GetParam() == DType::F32 ? master : static_cast<float>(BFloat16(master));
    EXPECT_EQ(weight_at(i), rounded);
    differ += rounded != master ? 1 : 0;
  }
  EXPECT_EQ(differ > 0, GetParam() == DType::BF16) << "the master holds what bf16 cannot";
}

TEST_P(AdamWTest, WithoutGradientOnlyWhatDecaysChanges) {
  config_.weight_decay = 2;
  std::fill_n(gradients_.host<float>(), kElements, 0.0f);
  const AdamW optimizer(pool_, weights_, gradients_, kSegments);
  optimizer.apply(*stream_, config_, 0.25, 1, 1);
  for (std::int64_t i = 0; i < kElements; ++i) {
    const double start = references_[static_cast<std::size_t>(i)].weight;
    EXPECT_EQ(weight_at(i), decays(i) ? start / 2 : start) << i;
  }
}

TEST_P(AdamWTest, RefreshMasterTakesWeightsSetFromOutside) {
  AdamW optimizer(pool_, weights_, gradients_, kSegments);
  for (std::int64_t i = 0; i < kElements; ++i) {
    if (GetParam() == DType::F32) {
      weights_.host<float>()[i] = 0.75f;
    } else {
      weights_.host<BFloat16>()[i] = BFloat16(0.75f);
    }
    references_[static_cast<std::size_t>(i)] = {.weight = 0.75};
  }
  optimizer.refresh_master();
  expect_steps_equal(optimizer, 2);
}

TEST(AdamW, AnEmptyBufferHasNothingToDo) {
  tensor::Pool pool;
  const auto stream = tensor::make_cpu_stream("compute", 1, tensor::StreamMode::Inline);
  const AdamW optimizer(pool,
                        Tensor(pool, DType::BF16, {0}, Tag::Weights),
                        Tensor(pool, DType::F32, {0}, Tag::Gradients),
                        {});
  optimizer.apply(*stream, {}, 1e-3, 1, 1);
  EXPECT_EQ(optimizer.moment1().elements(), 0);
}

}  // namespace adamw_test
}  // namespace weft::optim
