// Under a launcher, the launcher decides how many ranks there are.
#pragma once

#include "weft/words/resolution.h"

namespace weft::cli {

// Where Open MPI started this process: the MPI backend, whatever runtime.backend says, and the
// launcher's number of ranks. ConfigError where the config asks for another number, and under a
// launcher that is not known, as below.
void follow_launcher(const words::Resolution& run, config::Config& config);

// ConfigError where a launcher that is not Open MPI's (Slurm, MPICH, torchrun) started several
// processes, each of which would do the whole run. A word that sets runtime.backend says that this
// is meant.
void refuse_foreign_launcher(const words::Resolution& run);

bool under_launcher();
// The rank of this process; 0 without a launcher.
int launcher_rank();

}  // namespace weft::cli
