#include "weft/schedule/node_index.h"

#include <gtest/gtest.h>

namespace weft::schedule {
namespace node_index_test {

Node node(int layer, int micro_batch) {
  return {.layer = layer,
          .direction = Direction::F,
          .micro_batch = micro_batch,
          .piece = Piece::Attention};
}

TEST(NodeIndex, FindsEachOfManyAndNoOther) {
  NodeIndex index;
  for (int layer = 0; layer < 50; ++layer) {
    for (int mb = 0; mb < 50; ++mb) EXPECT_TRUE(index.add(node(layer, mb), layer * 50 + mb));
  }
  for (int layer = 0; layer < 50; ++layer) {
    for (int mb = 0; mb < 50; ++mb) EXPECT_EQ(index.find(node(layer, mb)), layer * 50 + mb);
    EXPECT_FALSE(index.contains(node(layer, 50)));
  }
}

TEST(NodeIndex, ANodeKeepsItsNumberUntilItIsChanged) {
  NodeIndex index;
  EXPECT_TRUE(index.add(node(0, 0), 3));
  EXPECT_FALSE(index.add(node(0, 0), 4));
  EXPECT_EQ(index.find(node(0, 0)), 3);
  index.change(node(0, 0), 5);
  EXPECT_EQ(index.find(node(0, 0)), 5);
}

}  // namespace node_index_test
}  // namespace weft::schedule
