// Memory saved on a GPU, as savings_test.cpp has it on the CPU: ranks share one card.
#include <gtest/gtest.h>

#include "tests/train/random_savings_support.h"

namespace weft::train {
namespace gpu_savings_test {

// Draws every form of optimizer state, logits in chunks, and attention that ranks share saved in
// each way.
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
