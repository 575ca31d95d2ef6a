// Fused norm and rotation of query and key heads.
#include <gtest/gtest.h>

#include "tests/train/engine_cases_support.h"

namespace weft::train {
namespace norm_rotary_test {

config::Config fused(config::Config config) {
  config.model.apply_rope_fusion = true;
  return config;
}

TEST(NormRotary, IsNearTheTwoOperations) {
  for (const LayoutCase& layout : {LayoutCase{}, LayoutCase{.world = 4, .ep = 2}}) {
    const config::Config config = with_layout(small_config(), layout);
    const Outcome plain = train_some(config, 3), one = train_some(fused(config), 3);
    for (std::size_t i = 0; i < plain.losses.size(); ++i) {
      EXPECT_NEAR(one.losses[i], plain.losses[i], 1e-5 * plain.losses[i]) << "step " << i;
      EXPECT_NEAR(one.gradient_norms[i], plain.gradient_norms[i], 1e-5 * plain.gradient_norms[i]);
    }
    EXPECT_NE(one.weights, plain.weights) << "the switch does nothing";
  }
}

TEST(NormRotary, OverlapChangesNoBitOfIt) {
  config::Config config = fused(with_layout(small_config(), {.world = 4, .ep = 2}));
  const Outcome plain = train_some(config, 3);
  to_overlap(config);
  expect_same_bits(plain, train_some(config, 3));
}

}  // namespace norm_rotary_test
}  // namespace weft::train
