#include "weft/train/launch.h"

#include "weft/config/derived.h"
#include "weft/kernels/kernels.h"

namespace weft::train {
namespace {

void run_reporting(const comm::LaunchOptions& options, const comm::RankFunction& function) {
  try {
    comm::run_mpi(options, function);
  } catch (const base::ConfigError&) {
    throw ReportedError(ReportedError::Cause::Input);
  } catch (const std::exception&) {
    throw ReportedError(ReportedError::Cause::Run);
  }
}

}  // namespace

void launch(const config::Config& config,
            const Report& report,
            const comm::RankFunction& function) {
  kernels::prepare_process();
  comm::LaunchOptions options{.world = static_cast<int>(config::layout_of(config).world),
                              .timeout_seconds = config.runtime.timeout_seconds};
  switch (config.runtime.backend) {
    case config::CommBackend::Threads:
      return comm::run_threads(options, function);
    case config::CommBackend::Mpi:
      if (!comm::has_mpi()) return comm::run_mpi(options, function);  // throws that there is none
      options.report = report;
      return run_reporting(options, function);
    case config::CommBackend::Fake:
      return comm::run_fake(options, function);
  }
}

}  // namespace weft::train
