#include "weft/train/launch.h"

#include "weft/config/derived.h"
#include "weft/kernels/kernels.h"

namespace weft::train {

void launch(const config::Config& config, const comm::RankFunction& function) {
  kernels::prepare_process();
  const comm::LaunchOptions options{.world = static_cast<int>(config::layout_of(config).world),
                                    .timeout_seconds = config.runtime.timeout_seconds};
  switch (config.runtime.backend) {
    case config::CommBackend::Threads:
      return comm::run_threads(options, function);
    case config::CommBackend::Mpi:
      return comm::run_mpi(options, function);
    case config::CommBackend::Fake:
      return comm::run_fake(options, function);
  }
}

}  // namespace weft::train
