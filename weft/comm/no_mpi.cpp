#include "weft/base/error.h"
#include "weft/comm/launch.h"
#include "weft/comm/rendezvous/place.h"

namespace weft::comm {

void run_mpi(const LaunchOptions&, const RankFunction&) {
  throw base::ConfigError(
      "this build has no MPI; install Open MPI (Debian: libopenmpi-dev), configure and build "
      "again, "
      "or use the threads backend");
}

bool has_mpi() { return false; }

rendezvous::MeetingPoint rendezvous::meet_over_mpi() {
  throw base::ConfigError("this build has no MPI: set MASTER_ADDR and MASTER_PORT");
}

}  // namespace weft::comm
