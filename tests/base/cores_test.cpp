#include "weft/base/cores.h"

#include <gtest/gtest.h>

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

}  // namespace cores_test
}  // namespace weft::base
