// What is in the way of a shorter step: one definition for a step that was measured and for one
// that was priced.
//
// A step is compute and what it loses besides. The wall is the largest of these losses, where it is
// a tenth of the step or more; else compute itself. Memory is the wall of a run that does not fit,
// which no time tells.
#pragma once

#include <string_view>

#include "weft/trace/walls.h"

namespace weft::trace {

enum class Wall { Compute, Communication, Host, Update, Bubble, Idle, Memory };
std::string_view word(Wall wall);

// Milliseconds of a step in which nothing is computed.
struct LostMs {
  double communication = 0;  // messages and copies move, or wait for ranks that come late
  double host = 0;           // launches; of a trace, all that is done on the host
  double update = 0;         // of a price: optimizer state on the host
  double bubble = 0;         // a stage waits for another
  double idle = 0;           // nobody knows why

  double of(Wall wall) const;  // of compute and memory, none
};
// What transfers take of compute is in none: it is small, and no change takes it alone.
LostMs lost_of(const Walls& walls);

Wall dominant_wall(const LostMs& lost, double step_ms);

}  // namespace weft::trace
