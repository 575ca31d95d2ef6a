#include "weft/optim/gradient_norm.h"

#include <gtest/gtest.h>

namespace weft::optim {
namespace gradient_norm_test {

TEST(ClipScale, ShrinksALargeNormToTheLimit) {
  EXPECT_NEAR(clip_scale(10, 1) * 10, 1, 1e-6);
  EXPECT_NEAR(clip_scale(1e6, 0.5) * 1e6, 0.5, 1e-6);
  EXPECT_LE(clip_scale(10, 1) * 10, 1);
}

TEST(ClipScale, LeavesASmallNormAlone) {
  EXPECT_EQ(clip_scale(0.5, 1), 1);
  EXPECT_EQ(clip_scale(0, 1), 1);
  EXPECT_EQ(clip_scale(0, 1e-9), 1e-9 / 1e-6) << "the norm's epsilon rules below itself";
}

TEST(ClipScale, LimitZeroNeverClips) {
  EXPECT_EQ(clip_scale(1e30, 0), 1);
  EXPECT_EQ(clip_scale(0, 0), 1);
}

}  // namespace gradient_norm_test
}  // namespace weft::optim
