#include "weft/cli/launcher.h"

#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::cli {

bool under_launcher() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

int launcher_rank() {
  const char* text = std::getenv("OMPI_COMM_WORLD_RANK");
  return text == nullptr ? 0 : static_cast<int>(base::parse_integer(text).value_or(0));
}

void follow_launcher(config::Config& config) {
  const char* text = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (text == nullptr) return;
  const std::optional<long long> size = base::parse_integer(text);
  if (!size || *size < 1) {
    throw base::ConfigError(base::text(
        "OMPI_COMM_WORLD_SIZE={}: not a number of ranks; start through mpirun, or unset it",
        text));
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
  config.runtime.backend = config::CommBackend::Mpi;
}

}  // namespace weft::cli
