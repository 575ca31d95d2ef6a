// How long threads that compute keep a core from each other.
#pragma once

#include <vector>

namespace weft::measure {

// No scheduler lets a thread keep a core for longer while another of its class wants it.
inline constexpr double kLongestTurn = 0.1;  // seconds

// Two threads that want one core, in the class of compute that gives way (base::give_way): the time
// for which one keeps it. Takes a fifth of a second. 0: no turn was seen.
double core_turn_seconds();

// The same of what several looks saw: the median of the look with the shortest turns, since another
// program makes turns longer and never shorter. Turns beyond kLongestTurn are another program's.
double turn_of(const std::vector<std::vector<double>>& looks);

}  // namespace weft::measure
