#include "weft/schedule/passes/rows_ahead.h"

#include <gtest/gtest.h>

#include "tests/schedule/models_support.h"
#include "tests/schedule/plans_support.h"
#include "weft/schedule/verify.h"

namespace weft::schedule {
namespace rows_ahead_test {

// Recomputation of the experts, or also of everything before them.
enum class Again { Experts, Layers };

Detail recomputing(Again what) {
  Detail detail{.split = {Piece::Attention, Piece::Route, Piece::Experts},
                .recomputed = {{Piece::Route, Part::Choose},
                               Piece::Permute,
                               Piece::Dispatch,
                               {Piece::Experts, Part::Arrange},
                               {Piece::Experts, Part::Fc1},
                               {Piece::Experts, Part::Act}}};
  if (what == Again::Layers) {
    detail.recomputed.push_back(Piece::Attention);
    detail.recomputed.push_back({Piece::Route, Part::Norm});
  }
  return detail;
}

// The first micro-batch runs backward while the second runs forward.
TEST(RowsAhead, TravelUnderTheForwardOfAnotherMicroBatch) {
  for (const Again what : {Again::Experts, Again::Layers}) {
    const RankPlan plan = plans_of(
        {.layers = "mmmm", .micro_batches = 4, .overlap = true, .detail = recomputing(what)})[0];
    for (const auto& [again, under] : {std::pair{"3R0.dispatch", "0F1.attention.core"},
                                       std::pair{"2R0.dispatch", "1F1.attention.core"},
                                       std::pair{"0R0.dispatch", "3F1.attention.core"}}) {
      EXPECT_TRUE(run_together(plan.training, again, under)) << again;
    }
    EXPECT_FALSE(run_together(plan.training, "2R0.dispatch", "2R0.experts.arrange"));
    EXPECT_LT(find(plan.training, "2D0.combine"), find(plan.training, "2R0.dispatch"));
  }
}

TEST(RowsAhead, StandStillInAPlainOrder) {
  const RankPlan plan =
      plans_of({.layers = "mmmm", .micro_batches = 4, .detail = recomputing(Again::Experts)})[0];
  const std::size_t dispatch = find(plan.training, "2R1.dispatch");
  EXPECT_EQ(find(plan.training, "2R1.permute") + 1, dispatch);
  EXPECT_EQ(find(plan.training, "2R1.experts.arrange"), dispatch + 1);
}

TEST(RowsAhead, EveryOrderWithThemIsRight) {
  for (PlanCase c : some_cases(7)) {
    if (c.ep == 1 || c.layers.find('m') == std::string::npos) continue;
    c.detail = recomputing(Again::Experts);
    EXPECT_EQ(verify_plan(plans_of(c)), std::vector<std::string>()) << name(c);
  }
}

}  // namespace rows_ahead_test
}  // namespace weft::schedule
