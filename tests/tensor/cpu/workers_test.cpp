#include "weft/tensor/cpu/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "weft/base/error.h"

namespace weft::tensor::cpu {
namespace workers_test {

TEST(Workers, EveryTaskRunsOnce) {
  for (const int threads : {1, 2, 4}) {
    Workers workers(threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> times(37);
      workers.parallel(37, [&](std::int64_t i) { ++times[static_cast<std::size_t>(i)]; });
      for (const auto& n : times) EXPECT_EQ(n, 1);
    }
  }
}

// Longer than a thread spins before it sleeps.
constexpr std::chrono::milliseconds kLong{2};

TEST(Workers, HelpersThatSleepAreWoken) {
  for (const int threads : {2, 4}) {
    Workers workers(threads);
    for (int round = 0; round < 20; ++round) {
      std::this_thread::sleep_for(kLong);
      std::vector<std::atomic<int>> times(37);
      workers.parallel(37, [&](std::int64_t i) { ++times[static_cast<std::size_t>(i)]; });
      for (const auto& n : times) EXPECT_EQ(n, 1);
    }
  }
}

TEST(Workers, ACallerThatSleepsIsWoken) {
  for (const int threads : {2, 4}) {
    Workers workers(threads);
    const auto caller = std::this_thread::get_id();
    for (int round = 0; round < 20; ++round) {
      // A helper takes one task and keeps it; the caller runs the others and then waits.
      std::atomic<int> kept{0}, done{0};
      workers.parallel(8, [&](std::int64_t) {
        if (std::this_thread::get_id() == caller) {
          while (kept == 0) std::this_thread::yield();
        } else {
          ++kept;
          std::this_thread::sleep_for(kLong);
        }
        ++done;
      });
      EXPECT_EQ(done, 8);
      EXPECT_GT(kept, 0);
    }
  }
}

TEST(Workers, SleepingHelpersEndWithTheirOwner) {
  Workers workers(4);
  workers.parallel(8, [](std::int64_t) {});
  std::this_thread::sleep_for(kLong);
}

TEST(Workers, AnExceptionReachesTheCaller) {
  Workers workers(2);
  EXPECT_THROW(workers.parallel(8,
                                [](std::int64_t i) {
                                  if (i == 5) throw base::SystemError("x");
                                }),
               base::SystemError);
  workers.parallel(8, [](std::int64_t) {});
}

}  // namespace workers_test
}  // namespace weft::tensor::cpu
