// Slowdown between concurrent work: compute and communication of a rank, and ranks that share
// cores.
//
// A node's time depends on concurrent work, which in turn depends on node times. The step is
// therefore simulated several times, each time with the slowdowns of the previous round.
#pragma once

#include <vector>

#include "weft/exec/sim/simulate.h"

namespace weft::exec::sim {

struct Contention {
  // Fraction by which compute slows down if all of it runs beside communication.
  double beside_communication = 0;
  // Fraction by which communication slows down beside compute.
  double beside_compute = 0;
  // Cores shared by all ranks; 0: unlimited.
  double cores = 0;
  // Cores that a simulated rank's compute takes; it may represent several ranks. Empty: one each.
  std::vector<double> cores_of_rank = {};
  // Scheduler time slice. An exchange waits for all its ranks. If one rank goes on with other work,
  // a rank on its core must wait for a time slice.
  double turn_seconds = 0;
};

Result simulate(const SimulatedStep& step, const Contention& contention);

}  // namespace weft::exec::sim
