#include "weft/tensor/cpu/workers.h"

#include <gtest/gtest.h>

#include <atomic>

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
