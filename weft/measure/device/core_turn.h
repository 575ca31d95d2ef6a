// Scheduler time slice of compute threads that share a core.
#pragma once

#include <vector>

namespace weft::measure {

// Upper limit of a time slice: no scheduler gives a longer one while another thread of the class
// waits.
inline constexpr double kLongestTurn = 0.1;  // seconds

// Time slice of two threads on one core, in the class of compute that gives way (base::give_way).
// Takes a fifth of a second. 0: no switch was seen.
double core_turn_seconds();

// Time slice from several observations: the median of the observation with the shortest slices,
// since other programs only lengthen slices. Slices beyond kLongestTurn belong to other programs.
double turn_of(const std::vector<std::vector<double>>& looks);

}  // namespace weft::measure
