#include "weft/base/parallel/bell.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weft::base {
namespace bell_test {

TEST(Bell, WaitingForAPastCountReturnsAtOnce) {
  Bell bell;
  const std::uint32_t seen = bell.count();
  bell.ring();
  bell.wait(seen);
  EXPECT_EQ(bell.count(), seen + 1);
}

// Two threads exchange a number; a lost ring would hang the test.
TEST(Bell, NoRingIsLost) {
  constexpr int kTurns = 20000;
  Bell to, fro;
  int number = 0;
  std::thread other([&] {
    for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
      while (to.count() < turn) {
        const std::uint32_t seen = to.count();
        if (seen < turn) to.wait(seen);
      }
      ++number;
      fro.ring();
    }
  });
  for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
    ++number;
    to.ring();
    while (fro.count() < turn) {
      const std::uint32_t seen = fro.count();
      if (seen < turn) fro.wait(seen);
    }
    ASSERT_EQ(number, 2 * static_cast<int>(turn));
  }
  other.join();
}

TEST(Bell, AllWhoWaitGoOn) {
  Bell bell;
  const std::uint32_t seen = bell.count();
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      while (bell.count() == seen) bell.wait(seen);
    });
  }
  bell.ring();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_NE(bell.count(), seen);
}

}  // namespace bell_test
}  // namespace weft::base
