#include "weft/cli/run/launcher.h"

#include <algorithm>
#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::cli {

bool under_launcher() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

int launcher_rank() {
  const char* text = std::getenv("OMPI_COMM_WORLD_RANK");
  if (text == nullptr && std::getenv("WORLD_SIZE") != nullptr) text = std::getenv("RANK");
  return text == nullptr ? 0 : static_cast<int>(base::parse_integer(text).value_or(0));
}

std::optional<std::int64_t> launcher_local_size() {
  const char* text = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (text == nullptr && std::getenv("WORLD_SIZE") != nullptr) {
    text = std::getenv("LOCAL_WORLD_SIZE");
  }
  if (text == nullptr) return std::nullopt;
  const std::optional<long long> size = base::parse_integer(text);
  return size && *size >= 1 ? std::optional<std::int64_t>(*size) : std::nullopt;
}

int launcher_local_rank() {
  const char* text = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  if (text == nullptr && std::getenv("WORLD_SIZE") != nullptr) text = std::getenv("LOCAL_RANK");
  if (text == nullptr) return launcher_rank();
  return static_cast<int>(base::parse_integer(text).value_or(0));
}

void refuse_foreign_launcher(const words::Resolution& run) {
  if (under_launcher()) return;
  if (std::ranges::find(run.set_keys, "runtime.backend", &words::Ledger::SetKey::key) !=
      run.set_keys.end()) {
    return;
  }
  for (const char* name : {"SLURM_NTASKS", "PMI_SIZE", "WORLD_SIZE"}) {
    const char* text = std::getenv(name);
    const long long processes = text == nullptr ? 1 : base::parse_integer(text).value_or(1);
    if (processes < 2) continue;
    throw base::ConfigError(base::text(
        "{}={}: a launcher that Weft does not know means {} processes, and each of them would do "
        "the whole run: start the ranks with Open MPI (mpirun -n {} weft ..., docs/mpi.md), or set "
        "runtime.backend=threads for a run whose ranks are threads of one process",
        name,
        text,
        processes,
        processes));
  }
}

void follow_launcher(const words::Resolution& run, config::Config& config) {
  refuse_foreign_launcher(run);
  const bool nccl = config.runtime.backend == config::CommBackend::Nccl;
  const char* name = "OMPI_COMM_WORLD_SIZE";
  const char* text = std::getenv(name);
  if (nccl && std::getenv("WORLD_SIZE") != nullptr) text = std::getenv(name = "WORLD_SIZE");
  if (text == nullptr) return;
  const std::optional<long long> size = base::parse_integer(text);
  if (!size || *size < 1) {
    throw base::ConfigError(
        base::text("{}={}: not a number of ranks; start through {}, or unset it",
                   name,
                   text,
                   nccl ? "torchrun or mpirun" : "mpirun"));
  }
  const std::optional<std::int64_t>& asked = config.runtime.world_size;
  if (asked && *asked != *size) {
    throw base::ConfigError(base::text(
        "runtime.world_size = {}, but the launcher started {}: leave it out, or use -n {}",
        *asked,
        base::counted(*size, "rank"),
        *asked));
  }
  config.runtime.world_size = *size;
  if (!nccl) config.runtime.backend = config::CommBackend::Mpi;
}

train::Process this_process(Format format) {
  train::Process process{.report = failure_printer(format)};
  for (const char* name : comm::nccl_variables()) {
    if (const char* value = std::getenv(name)) process.environment.emplace(name, value);
  }
  return process;
}

}  // namespace weft::cli
