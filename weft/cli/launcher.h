// Under a launcher, the launcher decides how many ranks there are.
#pragma once

#include "weft/config/config.h"

namespace weft::cli {

// Where Open MPI started this process: MPI backend, and its number of ranks. ConfigError where the
// config asks for another number or backend.
void follow_launcher(config::Config& config);

}  // namespace weft::cli
