// Main obstacle to a shorter step, defined alike for measured and for priced steps.
//
// A step is compute plus losses. The wall is the largest loss if it is at least a tenth of the
// step, else compute. Memory is the wall of a run that does not fit; no time shows it.
#pragma once

#include <string_view>

#include "weft/trace/exposure/walls.h"

namespace weft::trace {

enum class Wall { Compute, Communication, Host, Update, Bubble, Idle, Memory };
std::string_view word(Wall wall);

// Milliseconds of a step without compute, by kind of loss.
struct LostMs {
  double communication = 0;  // messages or copies in flight, or waits for late ranks
  double host = 0;           // launches; in a trace, all host time
  double update = 0;         // optimizer on the host; prices only
  double bubble = 0;         // waits for other pipeline stages
  double idle = 0;           // unexplained

  double of(Wall wall) const;  // 0 for compute and memory
};
// Ignores compute time that transfers add (slowed): it is small, and no single change removes it.
LostMs lost_of(const Walls& walls);

Wall dominant_wall(const LostMs& lost, double step_ms);

}  // namespace weft::trace
