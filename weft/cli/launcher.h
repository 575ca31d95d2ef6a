// Under a launcher, the launcher decides how many ranks there are.
#pragma once

#include "weft/config/config.h"

namespace weft::cli {

// Where Open MPI started this process: the MPI backend, whatever runtime.backend says, and the
// launcher's number of ranks. ConfigError where the config asks for another number.
void follow_launcher(config::Config& config);

bool under_launcher();
// The rank of this process; 0 without a launcher.
int launcher_rank();

}  // namespace weft::cli
