// Work that slows other work down: compute and communication of a rank beside each other, and ranks
// that share cores.
//
// How long a node takes then depends on what runs beside it, and that on how long nodes take: the
// step is simulated several times, each time with what the nodes were slowed down by in the time
// before.
#pragma once

#include <vector>

#include "weft/exec/sim/simulate.h"

namespace weft::exec::sim {

struct Contention {
  // How much longer, as a part of itself, compute takes all of which is beside communication.
  double beside_communication = 0;
  // The same of communication beside compute.
  double beside_compute = 0;
  // Cores that all ranks have together; 0: as many as they want.
  double cores = 0;
  // That the compute of a simulated rank takes; it may stand for several ranks. Empty: one each.
  std::vector<double> cores_of_rank = {};
  // That compute keeps a core which compute of another rank wants. An exchange waits for all its
  // ranks: where one goes on with other work, another that shares its core has to wait for a turn
  // before it gets to the exchange at all.
  double turn_seconds = 0;
};

Result simulate(const SimulatedStep& step, const Contention& contention);

}  // namespace weft::exec::sim
