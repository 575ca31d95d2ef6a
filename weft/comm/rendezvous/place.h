// Where a process stands among the ranks of a run, as its launcher says in the environment.
//
// torchrun and the usual wrappers around srun set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
// MASTER_PORT. Open MPI sets OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK and _LOCAL_SIZE; rank 0's
// address and a free port are then told by MPI, unless they are set. A run of one rank needs none
// of them.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "weft/comm/launch.h"

namespace weft::comm::rendezvous {

struct Place {
  int rank = 0;
  int world = 1;
  int local_rank = 0;                 // among the ranks on this machine
  std::string address = "127.0.0.1";  // of rank 0
  int port = 0;
};

// The names of all that place_from reads.
std::span<const char* const> variables();

// Rank 0's machine and a port that was free there.
struct MeetingPoint {
  std::string machine;
  int port = 0;
};
// Asks MPI, which has come and gone when this returns; all processes of mpirun call it, once.
// ConfigError in a build without MPI.
MeetingPoint meet_over_mpi();

// ConfigError with everything that is wrong: the variable, its value, what it may be and who sets
// it. `world` is the number of ranks that the run needs; 0 takes the launcher's. `meet` says where
// ranks of mpirun meet; where it is empty their variables have to, on several machines.
Place place_from(const Environment& environment,
                 int world,
                 const std::function<MeetingPoint()>& meet = {});

}  // namespace weft::comm::rendezvous
