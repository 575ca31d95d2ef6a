#include "weft/base/error.h"
#include "weft/comm/launch.h"

namespace weft::comm {

void run_mpi(const LaunchOptions&, const RankFunction&) {
  throw base::ConfigError(
      "this build has no MPI; install Open MPI (Debian: libopenmpi-dev), configure and build "
      "again, "
      "or use the threads backend");
}

bool has_mpi() { return false; }

}  // namespace weft::comm
