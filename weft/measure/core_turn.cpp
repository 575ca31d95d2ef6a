#include "weft/measure/core_turn.h"

#include <chrono>
#include <thread>
#include <vector>

#include "weft/base/casts.h"
#include "weft/base/cores.h"

namespace weft::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLooks{100};
// Shorter ones are interrupts.
constexpr std::chrono::microseconds kShortestTurn{100};

// Looks at the clock until `end`; how long it did not, each time that another had the core.
std::vector<double> turns_of_another(Clock::time_point end) {
  std::vector<double> turns;
  Clock::time_point before = Clock::now();
  while (before < end) {
    const Clock::time_point now = Clock::now();
    if (now - before > kShortestTurn) {
      turns.push_back(std::chrono::duration<double>(now - before).count());
    }
    before = now;
  }
  return turns;
}

}  // namespace

double core_turn_seconds() {
  std::vector<double> turns;
  std::thread([&] {
    base::give_way();
    const base::StayOnCore stay(base::usable_cores().back());
    const Clock::time_point end = Clock::now() + kLooks;
    std::thread other([&] { turns_of_another(end); });
    turns = turns_of_another(end);
    other.join();
  }).join();
  double sum = 0;
  for (const double turn : turns) sum += turn;
  return turns.empty() ? 0 : sum / base::number(std::ssize(turns));
}

}  // namespace weft::measure
