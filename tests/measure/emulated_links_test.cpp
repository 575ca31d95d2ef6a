// Emulated links are as slow as asked, and no slower because another program took the cores.
#include "weft/measure/bench/emulated_links.h"

#include <gtest/gtest.h>

namespace weft::measure {
namespace emulated_links_test {

double rate_of(const grid::Fabric& links) { return links.intra.bytes_per_second; }

TEST(EmulatedLinks, TakeAsLongAsAsked) {
  constexpr double kBytes = 3e6;
  const auto seconds_over = [](const grid::Fabric& links) { return kBytes / rate_of(links); };
  EXPECT_NEAR(seconds_over(links_for(0.02, seconds_over)), 0.02, 0.0001);
  EXPECT_EQ(rate_of(links_for(0.5, seconds_over)), rate_of(links_for(0.5, seconds_over)));
}

// A step of 0.3 s that took 5 s beside another program asks for a wire of 0.6 s, not of 5 s.
TEST(EmulatedLinks, AStepThatWaitedForACoreDoesNotCountWhole) {
  EXPECT_EQ(undisturbed_seconds(0.32, 0.3), 0.32) << "a quiet machine: what was measured";
  EXPECT_EQ(undisturbed_seconds(5, 0.3), 0.6);
  EXPECT_EQ(undisturbed_seconds(5, 0), 5) << "no compute node was measured";
}

TEST(EmulatedLinks, CorrectionsTogetherNeverMakeThemHalfAsFast) {
  const grid::Fabric found = links_of(1e8);
  EXPECT_EQ(rate_of(corrected(found, found, 0.4, 0.3)), 1e8 * (0.4 / 0.3));
  grid::Fabric links = found;
  for (int i = 0; i < 5; ++i) links = corrected(links, found, -1, 0.3);
  EXPECT_EQ(rate_of(links), 5e7);
  for (int i = 0; i < 2; ++i) links = corrected(links, found, 1e9, 0.3);
  EXPECT_EQ(rate_of(links), 2e8);
  EXPECT_EQ(rate_of(corrected(found, found, 0.1, 0)), kFastestLink);
}

}  // namespace emulated_links_test
}  // namespace weft::measure
