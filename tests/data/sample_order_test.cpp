#include "weft/data/sample_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "weft/base/error.h"

namespace weft::data {
namespace sample_order_test {

TEST(SampleOrder, AnEpochVisitsEveryTrainingSampleOnce) {
  const SampleOrder order("source", 1001, 10, 0.25, 7);
  ASSERT_EQ(order.samples(Split::Train), 75u);
  ASSERT_EQ(order.samples(Split::Eval), 25u);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 75; ++i) {
      seen.insert(order.first_token(Split::Train, epoch * 75 + i));
    }
    EXPECT_EQ(seen.size(), 75u);
    EXPECT_EQ(*seen.begin(), 0u);
    EXPECT_EQ(*seen.rbegin(), 740u);
  }
}

TEST(SampleOrder, EpochsAndSeedsChangeTheOrder) {
  const SampleOrder a("source", 1001, 10, 0, 7), b("source", 1001, 10, 0, 8);
  int same_epoch = 0, same_seed = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    same_epoch += a.first_token(Split::Train, i) == a.first_token(Split::Train, 100 + i);
    same_seed += a.first_token(Split::Train, i) == b.first_token(Split::Train, i);
  }
  EXPECT_LT(same_epoch, 20);
  EXPECT_LT(same_seed, 20);
}

TEST(SampleOrder, EvaluationIsTheEndInOrder) {
  const SampleOrder order("source", 1001, 10, 0.05, 7);
  EXPECT_EQ(order.samples(Split::Eval), 5u);
  EXPECT_EQ(order.first_token(Split::Eval, 0), 950u);
  EXPECT_EQ(order.first_token(Split::Eval, 4), 990u);
  EXPECT_EQ(order.first_token(Split::Eval, 5), 950u);
}

TEST(SampleOrder, AnySmallShareHoldsOneSampleOut) {
  const SampleOrder order("source", 21, 10, 0.001, 7);
  EXPECT_EQ(order.samples(Split::Train), 1u);
  EXPECT_EQ(order.samples(Split::Eval), 1u);
}

TEST(SampleOrder, TooFewTokensIsAnErrorWithTheNumbers) {
  try {
    SampleOrder("corpus.txt", 20, 10, 0.05, 7);
    FAIL();
  } catch (const base::ConfigError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("corpus.txt"), std::string::npos);
    EXPECT_NE(what.find("20 tokens"), std::string::npos);
    EXPECT_NE(what.find("seq_length=10"), std::string::npos);
  }
  EXPECT_THROW(SampleOrder("x", 0, 10, 0, 7), base::ConfigError);
  EXPECT_THROW(SampleOrder("x", 10, 10, 0, 7), base::ConfigError);
  EXPECT_NO_THROW(SampleOrder("x", 11, 10, 0, 7));
}

TEST(SampleOrder, ShareOutsideZeroToOneIsRejected) {
  EXPECT_THROW(SampleOrder("x", 1000, 10, -0.1, 7), base::ConfigError);
  EXPECT_THROW(SampleOrder("x", 1000, 10, 1.0, 7), base::ConfigError);
  EXPECT_THROW(SampleOrder("x", 1000, 10, std::nan(""), 7), base::ConfigError);
}

TEST(SampleOrder, EvaluationWithoutHeldOutSamplesIsRejected) {
  const SampleOrder order("x", 1000, 10, 0, 7);
  EXPECT_EQ(order.samples(Split::Eval), 0u);
  EXPECT_THROW(order.first_token(Split::Eval, 0), base::ConfigError);
}

}  // namespace sample_order_test
}  // namespace weft::data
