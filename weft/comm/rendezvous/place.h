// Rank of a process in its run, from the launcher's environment variables.
//
// torchrun and the usual wrappers around srun set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
// MASTER_PORT. Open MPI sets OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK and _LOCAL_SIZE. MPI then
// tells rank 0's address and a free port, unless they are set. A run of one rank needs no variable.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "weft/comm/launch.h"

namespace weft::comm::rendezvous {

struct Place {
  int rank = 0;
  int world = 1;
  int local_rank = 0;                 // index among the ranks of this machine
  std::string address = "127.0.0.1";  // address of rank 0
  int port = 0;
};

// Names of all variables that place_from reads.
std::span<const char* const> variables();

// Rank 0's machine and a port that was free there.
struct MeetingPoint {
  std::string machine;
  int port = 0;
};
// Agrees on the meeting point over MPI and shuts MPI down again. Every process of mpirun calls it
// once. ConfigError in a build without MPI.
MeetingPoint meet_over_mpi();

// Throws one ConfigError with every fault: the variable, its value, the valid values and the
// program that sets it. `world`: number of ranks the run needs; 0 takes the launcher's number.
// `meet` finds the meeting point under mpirun; if empty, several machines need the variables.
Place place_from(const Environment& environment,
                 int world,
                 const std::function<MeetingPoint()>& meet = {});

}  // namespace weft::comm::rendezvous
