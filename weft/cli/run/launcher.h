// A launcher decides the number of ranks.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/cli/output.h"
#include "weft/train/launch.h"
#include "weft/words/resolution.h"

namespace weft::cli {

// Under Open MPI selects the MPI backend, unless runtime.backend is nccl, and the launcher's number
// of ranks; for nccl torchrun's WORLD_SIZE counts too. ConfigError if the config asks for another
// number, or refuse_foreign_launcher() throws.
void follow_launcher(const words::Resolution& run, config::Config& config);

// ConfigError if a launcher other than Open MPI (Slurm, MPICH, torchrun) started several processes.
// Each process would run the whole run. Setting runtime.backend explicitly overrides the check.
void refuse_foreign_launcher(const words::Resolution& run);

bool under_launcher();
// Rank of this process; 0: no launcher.
int launcher_rank();

// Number of ranks that the launcher started on this machine, and the index of this one; nullopt and
// 0: no launcher.
std::optional<std::int64_t> launcher_local_size();
int launcher_local_rank();

// This process as the train library needs it.
train::Process this_process(Format format);

}  // namespace weft::cli
