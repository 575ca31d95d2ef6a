#include "weft/base/sealed_count.h"

#include <gtest/gtest.h>

namespace weft::base {
namespace sealed_count_test {

TEST(SealedCount, OpensForItsMemberAndPlaceAlone) {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{17}, kLargestSealable}) {
    const std::int64_t sealed = seal(count, 3, 5);
    EXPECT_EQ(unseal(sealed, 3, 5), count);
    EXPECT_EQ(unseal(sealed, 2, 5), std::nullopt);
    EXPECT_EQ(unseal(sealed, 3, 4), std::nullopt);
    EXPECT_EQ(unseal(sealed ^ 1, 3, 5), std::nullopt);
  }
}

}  // namespace sealed_count_test
}  // namespace weft::base
