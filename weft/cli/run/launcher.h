// Under a launcher, the launcher decides how many ranks there are.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/cli/output.h"
#include "weft/train/launch.h"
#include "weft/words/resolution.h"

namespace weft::cli {

// Where Open MPI started this process: the MPI backend, unless runtime.backend says nccl, and the
// launcher's number of ranks, which for nccl torchrun's WORLD_SIZE says too. ConfigError where the
// config asks for another number, and under a launcher that is not known, as below.
void follow_launcher(const words::Resolution& run, config::Config& config);

// ConfigError where a launcher that is not Open MPI's (Slurm, MPICH, torchrun) started several
// processes, each of which would do the whole run. A word that sets runtime.backend says that this
// is meant.
void refuse_foreign_launcher(const words::Resolution& run);

bool under_launcher();
// The rank of this process; 0 without a launcher.
int launcher_rank();

// How many ranks the launcher started on this machine, and the number of this process among them;
// none and 0 without a launcher.
std::optional<std::int64_t> launcher_local_size();
int launcher_local_rank();

// What a run over several processes is told of this one.
train::Process this_process(Format format);

}  // namespace weft::cli
