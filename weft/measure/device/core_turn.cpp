#include "weft/measure/device/core_turn.h"

#include <chrono>
#include <thread>
#include <vector>

#include "weft/base/median.h"
#include "weft/base/parallel/cores.h"

namespace weft::measure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLooks = 5;
constexpr std::chrono::milliseconds kLook{40};
// Shorter gaps are interrupts.
constexpr std::chrono::microseconds kShortestTurn{100};

// Polls the clock until `end`; returns the gaps in which another thread had the core.
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

double turn_of(const std::vector<std::vector<double>>& looks) {
  double shortest = 0;
  for (std::vector<double> turns : looks) {
    std::erase_if(turns, [](double turn) { return turn > kLongestTurn; });
    if (turns.empty()) continue;
    const double middle = base::median(std::move(turns));
    if (shortest == 0 || middle < shortest) shortest = middle;
  }
  return shortest;
}

double core_turn_seconds() {
  std::vector<std::vector<double>> looks;
  std::thread([&] {
    base::give_way();
    const base::StayOnCore stay(base::usable_cores().back());
    for (int look = 0; look < kLooks; ++look) {
      const Clock::time_point end = Clock::now() + kLook;
      std::thread other([&] { turns_of_another(end); });
      looks.push_back(turns_of_another(end));
      other.join();
    }
  }).join();
  return turn_of(looks);
}

}  // namespace weft::measure
