#include "weft/trace/timeline_text.h"

#include <gtest/gtest.h>

#include "tests/trace/timeline_support.h"
#include "weft/base/error.h"

namespace weft::trace {
namespace timeline_text_test {

TEST(TimelineText, ComesBackAsItWas) {
  Hand hand(5);
  hand.compute("0F0.route", 0, 1)
      .node("host", "0F0.sizes", 0, 2, {"0F0.route", "x \"y\""})
      .run(3)
      .communication("ep", "0F0.dispatch", 2, 3, Cover::Possible, {1, 5});
  hand.last().layer = 7;
  hand.last().micro_batch = 2;
  hand.last().bytes = 1'234'567'890'123;
  hand.last().rows = 99;
  hand.last().operation = "other";
  const Timeline before = hand;
  const Timeline after = parse_timeline(to_text(before));
  EXPECT_EQ(after.rank, before.rank);
  EXPECT_EQ(after.label, before.label);
  EXPECT_EQ(after.spans, before.spans);
}

TEST(TimelineText, AnythingElseIsOurBug) {
  EXPECT_THROW(parse_timeline("{"), base::InternalError);
  EXPECT_THROW(parse_timeline("{}"), base::InternalError);
  EXPECT_THROW(parse_timeline(R"({"rank":0,"label":"","spans":[[1,2]]})"), base::InternalError);
}

}  // namespace timeline_text_test
}  // namespace weft::trace
