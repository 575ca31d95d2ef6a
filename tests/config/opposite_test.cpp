#include "weft/config/opposite.h"

#include <gtest/gtest.h>

namespace weft::config {
namespace opposite_test {

TEST(Opposite, DenialsAndPairsAre) {
  EXPECT_TRUE(is_opposite("save_optim", "load_optim"));
  EXPECT_TRUE(is_opposite("no-save-optim", "no-load-optim"));
  EXPECT_TRUE(is_opposite("position-embedding", "no-position-embedding"));
  EXPECT_TRUE(is_opposite("enable_msc", "disable_msc"));
  EXPECT_TRUE(is_opposite("min_lr", "max_lr"));
  EXPECT_TRUE(is_opposite("tp_comm_overlap", "disable-tp-comm-overlap"));
}

TEST(Opposite, NearNamesAreNot) {
  EXPECT_FALSE(is_opposite("num_layer", "num_layers"));
  EXPECT_FALSE(is_opposite("no-save-optim", "no_save_optim"));
  EXPECT_FALSE(is_opposite("save_load", "load_save"));
}

}  // namespace opposite_test
}  // namespace weft::config
