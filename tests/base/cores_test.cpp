#include "weft/base/parallel/cores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <thread>

#include "weft/base/error.h"

namespace weft::base {
namespace cores_test {

std::vector<int> cores_of_a_new_thread() {
  std::vector<int> cores;
  std::thread([&] { cores = usable_cores(); }).join();
  return cores;
}

TEST(Cores, AThreadAndThoseItStartsStayOnOneCoreForAWhile) {
  const std::vector<int> all = usable_cores();
  ASSERT_FALSE(all.empty());
  for (const int core : all) {
    const StayOnCore stay(core);
    EXPECT_EQ(usable_cores(), std::vector<int>{core});
    EXPECT_EQ(cores_of_a_new_thread(), std::vector<int>{core});
  }
  EXPECT_EQ(usable_cores(), all);
  EXPECT_EQ(cores_of_a_new_thread(), all);
}

TEST(Cores, OneThatDoesNotExistIsRefused) {
  const std::vector<int> all = usable_cores();
  EXPECT_THROW(StayOnCore(65535), SystemError);
  EXPECT_EQ(usable_cores(), all);
}

TEST(Cores, ListsAreReadAsTheSystemWritesThem) {
  EXPECT_EQ(parse_cores("0-3,8,10-11\n"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cores("5"), std::vector<int>{5});
  for (const char* bad : {"", "\n", "3-1", "-1", "0-99999999", "1,,2", "1,", "a", "1-", "0-3x"}) {
    EXPECT_TRUE(parse_cores(bad).empty()) << bad;
  }
}

TEST(Cores, ANodeThatDoesNotExistChangesNothing) {
  const std::vector<int> all = usable_cores();
  std::thread([&] {
    for (const int node : {-1, 1 << 20}) {
      stay_on_node(node);
      EXPECT_EQ(usable_cores(), all) << node;
    }
  }).join();
}

TEST(Cores, AThreadStaysOnItsNode) {
  const std::vector<int> all = usable_cores();
  std::vector<int> near;
  std::ranges::set_intersection(all, cores_of_node(0), std::back_inserter(near));
  if (near.empty()) GTEST_SKIP() << "this machine does not tell its nodes";
  std::thread([&] {
    stay_on_node(0);
    EXPECT_EQ(usable_cores(), near);
  }).join();
  EXPECT_EQ(usable_cores(), all);
}

}  // namespace cores_test
}  // namespace weft::base
