// Memory savings on a GPU, like savings_test.cpp on the CPU: ranks share one GPU.
#include <gtest/gtest.h>

#include "tests/train/random_savings_support.h"

namespace weft::train {
namespace gpu_savings_test {

// This seed draws every form of optimizer state, chunked logits, and every saving in shared
// attention.
constexpr unsigned kSeed = 20261133;
constexpr int kMostRanks = 4;

TEST(GpuSavings, ChangeNoBitAndTakeWhatIsPredicted) {
  if (!devices::why_no_gpu().empty()) GTEST_SKIP() << devices::why_no_gpu();
  const unsigned seed = savings_seed(kSeed);
  Draw draw(seed);
  const int wanted = savings_wanted();
  for (int i = 0; i < wanted; ++i) {
    const DrawnSavings drawn = draw_run_that_saves(draw, kMostRanks);
    expect_saved(drawn, devices::DeviceKind::Cuda);
  }
  std::printf("seed %u: %d runs\n", seed, wanted);
}

}  // namespace gpu_savings_test
}  // namespace weft::train
