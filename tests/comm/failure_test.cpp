#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <mutex>

#include "tests/comm/failure_support.h"
#include "weft/base/sealed_count.h"

namespace weft::comm {
namespace failure_test {

using Clock = std::chrono::steady_clock;

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

class FailureInAGroup : public testing::TestWithParam<FailureScenario> {};

TEST_P(FailureInAGroup, EndsAllRanksInTimeAndNamesTheCause) {
  const auto begin = Clock::now();
  const std::string error = error_of([] {
    run_threads({.world = 3, .timeout_seconds = kFailureTimeout},
                [](Endpoint& endpoint) { run_failure(GetParam(), endpoint); });
  });
  for (const std::string& text : GetParam().says)
    EXPECT_NE(error.find(text), std::string::npos) << error;
  EXPECT_TRUE(error.starts_with("rank ")) << error;
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
}

INSTANTIATE_TEST_SUITE_P(Threads,
                         FailureInAGroup,
                         testing::ValuesIn(failure_scenarios()),
                         [](const auto& one) { return one.param.name; });

TEST(RunThreads, KeepsTheKindOfTheError) {
  const auto run = [](const RankFunction& function) { run_threads({.world = 2}, function); };
  EXPECT_THROW(run([](Endpoint&) { throw base::ConfigError("x"); }), base::ConfigError);
  EXPECT_THROW(run([](Endpoint&) { throw base::SystemError("x"); }), base::SystemError);
  EXPECT_THROW(run([](Endpoint&) { CHECK(false, "x"); }), base::InternalError);
  EXPECT_THROW(run([](Endpoint&) { throw std::bad_alloc(); }), base::SystemError);
  EXPECT_THROW(run([](Endpoint&) { throw 7; }), base::InternalError);
}

TEST(RunThreads, PeersLearnWhoFailedAndWhy) {
  std::mutex mutex;
  std::map<int, std::string> errors;
  EXPECT_THROW(run_threads({.world = 4, .timeout_seconds = 20},
                           [&](Endpoint& endpoint) {
                             try {
                               run_failure(failure_scenarios().front(), endpoint);
                             } catch (const std::exception& error) {
                               const std::lock_guard lock(mutex);
                               errors[endpoint.rank()] = error.what();
                               throw;
                             }
                           }),
               base::ConfigError);
  ASSERT_EQ(errors.size(), 4u);
  for (const int rank : {0, 2, 3})
    EXPECT_EQ(errors[rank], "barrier: rank 1 failed: the disk is full");
}

TEST(RunThreads, AFailureThatARankReportsItselfIsTheResult) {
  const std::string error = error_of([] {
    run_threads({.world = 2}, [](Endpoint& endpoint) {
      if (endpoint.rank() == 1) endpoint.fail("loss is not a number");
    });
  });
  EXPECT_EQ(error, "rank 1: loss is not a number");
}

TEST(RunThreads, RefusesOptionsThatMakeNoSense) {
  const auto nothing = [](Endpoint&) {};
  EXPECT_THROW(run_threads({.world = 0}, nothing), base::ConfigError);
  EXPECT_THROW(run_threads({.world = -3}, nothing), base::ConfigError);
  EXPECT_THROW(run_threads({.world = 1, .timeout_seconds = 0}, nothing), base::ConfigError);
  EXPECT_THROW(run_threads({.world = 1, .timeout_seconds = std::nan("")}, nothing),
               base::ConfigError);
  EXPECT_THROW(run_fake({.world = 4, .rank = 4}, nothing), base::ConfigError);
}

TEST(RunFake, OneRankOfAThousandNeedsNoOtherAndCountsWhatItWouldSend) {
  run_fake({.world = 1000, .rank = 7}, [](Endpoint& endpoint) {
    Bench bench(endpoint, Peers::Pretended, StreamRole::Alone);
    const Tensor data = bench.tensor(DType::F32, {2000});
    tensor::write<float>(*bench.stream, data, std::vector<float>(2000, 0.5f));
    bench.all->all_reduce(*bench.stream, data, Reduce::Sum);
    EXPECT_EQ(tensor::read<float>(*bench.stream, data)[1999], 500.0f);
    EXPECT_EQ(bench.all->traffic().at(Operation::AllReduce).bytes_sent, 4 * (1998 + 999 * 2));
  });
}

TEST(Group, RefusesRanksThatMakeNoGroup) {
  run_fake({.world = 4, .rank = 1}, [](Endpoint& endpoint) {
    EXPECT_THROW(endpoint.group("without me", {0, 2}), base::InternalError);
    EXPECT_THROW(endpoint.group("twice", {1, 1}), base::InternalError);
    EXPECT_THROW(endpoint.group("beyond", {1, 4}), base::InternalError);
    Bench bench(endpoint, Peers::Pretended, StreamRole::Alone);
    EXPECT_THROW(bench.all->send(*bench.stream, bench.tensor(DType::F32, {1}), 1),
                 base::InternalError);
    EXPECT_THROW(bench.all->all_reduce(*bench.stream, bench.tensor(DType::I32, {1}), Reduce::Sum),
                 base::InternalError);
  });
}

TEST(RunFake, CountsArriveUnderTheCodeOfThePeerThatWouldHaveSentThem) {
  for (const DeviceKind device : devices::all_devices()) {
    run_fake({.world = 4, .rank = 2}, [&](Endpoint& endpoint) {
      Bench bench(endpoint, Peers::Pretended, StreamRole::Alone, device);
      const Tensor own = bench.tensor(DType::I64, {3}), all = bench.tensor(DType::I64, {12});
      std::vector<std::int64_t> sealed;
      for (int i = 0; i < 3; ++i) sealed.push_back(base::seal(10 + i, 2, i));
      tensor::write<std::int64_t>(*bench.stream, own, sealed);
      bench.all->all_gather(*bench.stream, all, own, Content::Metadata);
      const std::vector<std::int64_t> received = tensor::read<std::int64_t>(*bench.stream, all);
      for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(base::unseal(received[static_cast<std::size_t>(i)], i / 3, i % 3), 10 + i % 3);
      }
    });
  }
}

TEST(RunFake, WhatIsNoSealedCountIsRepeatedAsItIs) {
  run_fake({.world = 3, .rank = 0}, [](Endpoint& endpoint) {
    Bench bench(endpoint, Peers::Pretended, StreamRole::Alone);
    const Tensor own = bench.tensor(DType::I64, {2}), all = bench.tensor(DType::I64, {6});
    const std::int64_t sealed = base::seal(7, 0, 0);
    tensor::write<std::int64_t>(*bench.stream, own, std::vector<std::int64_t>{sealed, 1234});
    bench.all->all_gather(*bench.stream, all, own);
    EXPECT_EQ(tensor::read<std::int64_t>(*bench.stream, all),
              (std::vector<std::int64_t>{sealed, 1234, sealed, 1234, sealed, 1234}));
  });
}

}  // namespace failure_test
}  // namespace weft::comm
