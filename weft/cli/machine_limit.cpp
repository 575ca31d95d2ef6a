#include "weft/cli/machine_limit.h"

#include "weft/base/text.h"
#include "weft/cli/machine.h"
#include "weft/derive/derived.h"
#include "weft/derive/derived_run.h"

namespace weft::cli {
namespace {

// Every pipeline rank stands for world / pp ranks like it.
double bytes_of_process(const config::Config& config) {
  const derive::DerivedRun run = derive::derived_run(config);
  double all = 0, largest = 0;
  for (const derive::DerivedRank& rank : run.ranks) {
    all += static_cast<double>(rank.bytes.total());
    largest = std::max(largest, static_cast<double>(rank.bytes.total()));
  }
  const double of_stage = static_cast<double>(run.layout.world / run.layout.pp);
  return config.runtime.backend == config::CommBackend::Threads ? all * of_stage : largest;
}

}  // namespace

std::optional<rules::Missing> machine_limit(const config::Config& config) {
  const bool on_cpu = config.runtime.device == config::DeviceKind::Cpu;
  if (derive::is_on_gpu(config) || !on_cpu) return std::nullopt;
  const double needed = bytes_of_process(config);
  const auto memory = static_cast<double>(this_machine().memory_bytes);
  if (memory <= 0 || needed <= memory) return std::nullopt;
  return rules::Missing{
      .part = "room on this machine",
      .keys = {},
      .message = base::text("weights, gradients and optimizer state of the ranks of this process "
                            "take {}, and this machine has {}",
                            base::human_bytes(needed),
                            base::human_bytes(memory)),
      .fix = "use a smaller model, or spread the ranks over machines (runtime.backend=mpi)"};
}

}  // namespace weft::cli
