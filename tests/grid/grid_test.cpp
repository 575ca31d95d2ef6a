#include "weft/grid/grid.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft::grid {
namespace grid_test {

using Groups = std::vector<std::vector<int>>;

std::vector<int> iota(int first, int count, int stride = 1) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ranks[static_cast<std::size_t>(i)] = first + i * stride;
  return ranks;
}

// TP2 CP2 PP2 over 16 ranks, experts folded as EP4.
Grid folded() { return Grid({.world = 16, .tp = 2, .cp = 2, .pp = 2, .ep = 4, .etp = 1}); }

TEST(Grid, SizesFollowFromTheWorld) {
  const Grid grid = folded();
  EXPECT_EQ(grid.dp(), 2);
  EXPECT_EQ(grid.edp(), 2);
  EXPECT_EQ(grid.ep(), 4);
  EXPECT_EQ(grid.etp(), 1);
  EXPECT_EQ(grid.pp(), 2);
}

TEST(Grid, DenseGroupsOfSixteenRanks) {
  const Grid grid = folded();
  EXPECT_EQ(grid.groups(GroupKind::Tp),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(grid.groups(GroupKind::Cp),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(grid.groups(GroupKind::Dp),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(grid.groups(GroupKind::DpCp),
            (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  EXPECT_EQ(grid.groups(GroupKind::Pp),
            (Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
  EXPECT_EQ(grid.groups(GroupKind::TpCp),
            (Groups{iota(0, 4), iota(4, 4), iota(8, 4), iota(12, 4)}));
  EXPECT_EQ(grid.groups(GroupKind::TpDpCp), (Groups{iota(0, 8), iota(8, 8)}));
}

TEST(Grid, ExpertGroupsOfSixteenRanks) {
  const Grid grid = folded();
  const Groups blocks{iota(0, 4), iota(4, 4), iota(8, 4), iota(12, 4)};
  EXPECT_EQ(grid.groups(GroupKind::Ep), blocks);
  EXPECT_EQ(grid.groups(GroupKind::TpEp), blocks);
  EXPECT_EQ(grid.groups(GroupKind::ExpertDp),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(grid.groups(GroupKind::TpEpPp),
            (Groups{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}));
  const Groups singletons = grid.groups(GroupKind::ExpertTp);
  ASSERT_EQ(singletons.size(), 16u);
  for (int rank = 0; rank < 16; ++rank) {
    EXPECT_EQ(singletons[static_cast<std::size_t>(rank)], std::vector<int>{rank});
  }
}

TEST(Grid, ModelParallelGroupsJoinTensorAndPipeline) {
  EXPECT_EQ(folded().groups(GroupKind::Mp),
            (Groups{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}}));
  EXPECT_EQ(folded().groups(GroupKind::TpDp),
            (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}}));
  EXPECT_EQ(folded().groups(GroupKind::World), (Groups{iota(0, 16)}));
}

TEST(Grid, EightExpertRanksSpanTensorContextAndData) {
  const Grid grid({.world = 16, .tp = 2, .cp = 2, .pp = 2, .ep = 8, .etp = 1});
  EXPECT_EQ(grid.groups(GroupKind::Ep), (Groups{iota(0, 8), iota(8, 8)}));
  EXPECT_EQ(grid.edp(), 1);
}

TEST(Grid, ExpertTensorParallelRanksAreNeighbours) {
  const Grid grid({.world = 16, .tp = 2, .cp = 1, .pp = 2, .ep = 4, .etp = 2});
  EXPECT_EQ(grid.dp(), 4);
  EXPECT_EQ(grid.edp(), 1);
  EXPECT_EQ(grid.groups(GroupKind::Ep),
            (Groups{iota(0, 4, 2), iota(1, 4, 2), iota(8, 4, 2), iota(9, 4, 2)}));
  EXPECT_EQ(grid.groups(GroupKind::ExpertTp),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
}

TEST(Grid, ExpertRanksMayCoverAllOfAPipelineStage) {
  const Grid grid({.world = 256, .tp = 4, .cp = 2, .pp = 4, .ep = 64, .etp = 1});
  EXPECT_EQ(grid.dp(), 8);
  EXPECT_EQ(grid.edp(), 1);
  EXPECT_EQ(grid.groups(GroupKind::Ep),
            (Groups{iota(0, 64), iota(64, 64), iota(128, 64), iota(192, 64)}));
}

TEST(Grid, EmbeddingGroupsHoldTheEndsOfEachPipeline) {
  const Grid grid({.world = 8, .tp = 2, .pp = 4, .etp = 2});
  EXPECT_EQ(grid.groups(GroupKind::Embedding), (Groups{{0, 6}, {1, 7}}));
  EXPECT_EQ(grid.groups(GroupKind::PositionEmbedding), (Groups{{0}, {1}}));
  EXPECT_EQ(grid.group_of(GroupKind::Embedding, 6), (std::vector<int>{0, 6}));
  EXPECT_TRUE(grid.group_of(GroupKind::Embedding, 2).empty());
  EXPECT_TRUE(grid.group_of(GroupKind::PositionEmbedding, 6).empty());
  EXPECT_EQ(Grid({.world = 2}).groups(GroupKind::Embedding), (Groups{{0}, {1}}));
}

TEST(Grid, ExpertViewSharesPipelineGroups) {
  const Grid grid({.world = 48, .tp = 2, .cp = 2, .pp = 3, .ep = 8, .etp = 1});
  for (int rank = 0; rank < grid.world(); ++rank) {
    const std::vector<int> pipeline = grid.group_of(GroupKind::Pp, rank);
    for (const int peer : pipeline) {
      const Coordinate mine = grid.coordinate(rank), theirs = grid.coordinate(peer);
      EXPECT_EQ(mine.ep, theirs.ep);
      EXPECT_EQ(mine.edp, theirs.edp);
      EXPECT_EQ(mine.etp, theirs.etp);
    }
  }
}

TEST(Grid, GroupOfIsTheGroupThatHoldsTheRank) {
  const Layout layouts[] = {
      {.world = 16, .tp = 2, .cp = 2, .pp = 2, .ep = 4},
      {.world = 24, .tp = 3, .pp = 2, .ep = 2, .etp = 3},
      {.world = 16, .tp = 2, .cp = 2, .pp = 2, .ep = 4, .order = "tp-cp-ep-pp-dp"}};
  for (const Layout& layout : layouts) {
    const Grid grid(layout);
    for (const GroupKind kind : kGroupKinds) {
      for (const std::vector<int>& group : grid.groups(kind)) {
        for (const int rank : group) EXPECT_EQ(grid.group_of(kind, rank), group) << word(kind);
      }
    }
  }
}

TEST(Grid, CoordinatesOfARankInBothViews) {
  EXPECT_EQ(folded().coordinate(13),
            (Coordinate{.tp = 1, .cp = 0, .dp = 1, .pp = 1, .etp = 0, .ep = 1, .edp = 1}));
}

TEST(Grid, OrderMovesTheAxes) {
  const Grid grid({.world = 4, .tp = 2, .etp = 2, .order = "dp-tp-cp-ep-pp"});
  EXPECT_EQ(grid.groups(GroupKind::Tp), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(grid.groups(GroupKind::Dp), (Groups{{0, 1}, {2, 3}}));
}

TEST(Grid, EveryGroupKindHasItsWord) {
  for (const GroupKind kind : kGroupKinds) EXPECT_EQ(group_kind(word(kind)), kind);
  EXPECT_EQ(group_kind("dq"), std::nullopt);
}

}  // namespace grid_test
}  // namespace weft::grid
