#include "weft/base/parallel/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace weft::base::parallel_test {
namespace {

TEST(Parallel, EveryTaskRunsOnceOnAnyNumberOfThreads) {
  for (const int threads : {1, 2, 7}) {
    for (const std::int64_t tasks : {0, 1, 3, 100}) {
      std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
      parallel(threads, tasks, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
      for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(Parallel, AnErrorIsThrownWhenAllThreadsHaveEnded) {
  std::atomic<int> running = 0;
  const auto body = [&](std::int64_t i) {
    ++running;
    if (i == 5) {
      --running;
      throw std::runtime_error("five");
    }
    --running;
  };
  EXPECT_THROW(parallel(3, 1000, body), std::runtime_error);
  EXPECT_EQ(running, 0);
}

}  // namespace
}  // namespace weft::base::parallel_test
