#include "weft/train/launch.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/parallel/cores.h"
#include "weft/derive/derived.h"
#include "weft/kernels/device.h"
#include "weft/kernels/kernels.h"
#include "weft/train/guard/expert_messages.h"

namespace weft::train {
namespace {

// Pins each rank to one core before it starts its streams: their threads inherit it.
comm::RankFunction on_one_core(const comm::RankFunction& function) {
  return [function, cores = base::usable_cores()](comm::Endpoint& endpoint) {
    const auto rank = static_cast<std::size_t>(endpoint.local_rank());
    const base::StayOnCore stay(cores[rank % cores.size()]);
    function(endpoint);
  };
}

using Run = void (*)(const comm::LaunchOptions&, const comm::RankFunction&);

// Errors before any rank runs (a missing variable or library) pass through unchanged.
void run_reporting(Run run, comm::LaunchOptions options, const comm::RankFunction& function) {
  bool reported = false;
  if (options.report) {
    options.report = [&reported, report = options.report](const std::string& error) {
      report(error);
      reported = true;
    };
  }
  try {
    run(options, function);
  } catch (const base::ConfigError&) {
    if (!reported) throw;
    throw ReportedError(ReportedError::Cause::Input);
  } catch (const base::MissingInput&) {
    if (!reported) throw;
    throw ReportedError(ReportedError::Cause::Input);
  } catch (const std::exception&) {
    if (!reported) throw;
    throw ReportedError(ReportedError::Cause::Run);
  }
}

tensor::Deterministic deterministic(const config::Config& config) {
  const bool same_bits = config.runtime.deterministic || config.model.deterministic_mode;
  return same_bits ? tensor::Deterministic::Yes : tensor::Deterministic::No;
}

}  // namespace

std::int64_t share_of_cores(const config::Config& config) {
  const std::int64_t usable = std::ssize(base::usable_cores());
  if (config::is_pretended(config.runtime.backend)) return usable;
  const std::int64_t world = derive::layout_of(config).world;
  if (!config::are_processes(config.runtime.backend)) {
    return std::max<std::int64_t>(1, usable / world);
  }
  // The launcher may have given each process its own cores already.
  const std::int64_t on_machine = std::min(world, config.runtime.ranks_per_node.value_or(world));
  return std::clamp<std::int64_t>(base::online_cores() / on_machine, 1, usable);
}

std::unique_ptr<tensor::Device> make_device(const rules::JudgedConfig& config, int local_rank) {
  switch (config->runtime.device) {
    case config::DeviceKind::Cpu:
      return kernels::make_cpu_device(static_cast<int>(config->runtime.threads_per_rank));
    case config::DeviceKind::Cuda:
      const bool share = config->runtime.backend == config::CommBackend::Threads;
      return kernels::make_cuda_device(share ? 0 : local_rank, deterministic(config));
  }
  UNREACHABLE("a device");
}

std::unique_ptr<tensor::Device> make_dry_device(const rules::JudgedConfig& config,
                                                kernels::DryRouting routing) {
  switch (config->runtime.device) {
    case config::DeviceKind::Cpu:
      return kernels::make_dry_device(routing);
    case config::DeviceKind::Cuda:
      return kernels::make_dry_gpu(deterministic(config), routing);
  }
  UNREACHABLE("a device");
}

void launch(const rules::JudgedConfig& config,
            const Process& process,
            const comm::RankFunction& body) {
  kernels::prepare_process();
  comm::LaunchOptions options{.world = static_cast<int>(derive::layout_of(config).world),
                              .timeout_seconds = config->runtime.timeout_seconds};
  const grid::Fabric fabric = derive::fabric_of(config);
  if (!fabric.is_free()) options.fabric = fabric;
  const comm::RankFunction function = config->runtime.pin_ranks ? on_one_core(body) : body;
  switch (config->runtime.backend) {
    case config::CommBackend::Threads:
      return comm::run_threads(options, function);
    case config::CommBackend::Mpi:
      options.report = process.report;
      return run_reporting(comm::run_mpi, options, function);
    case config::CommBackend::Nccl:
      options.report = process.report;
      options.environment = process.environment;
      return run_reporting(comm::run_nccl, options, function);
    case config::CommBackend::Fake:
      return comm::run_fake(options, function);
    case config::CommBackend::Loopback:
      options.expert_messages = expert_messages(config);
      return comm::run_loopback(options, function);
  }
}

}  // namespace weft::train
