#include "weft/cli/machine_limit.h"

#include "weft/base/text.h"
#include "weft/cli/machine.h"
#include "weft/derive/derived.h"
#include "weft/derive/derived_run.h"
#include "weft/plan/step_memory.h"

namespace weft::cli {
namespace {

// Of the ranks of this process: every pipeline rank stands for world / pp ranks like it.
double of_process(const config::Config& config, const std::vector<std::int64_t>& bytes_by_stage) {
  double all = 0, largest = 0;
  for (const std::int64_t bytes : bytes_by_stage) {
    all += static_cast<double>(bytes);
    largest = std::max(largest, static_cast<double>(bytes));
  }
  const grid::Layout layout = derive::layout_of(config);
  const double of_stage = static_cast<double>(layout.world / layout.pp);
  return config.runtime.backend == config::CommBackend::Threads ? all * of_stage : largest;
}

std::vector<std::int64_t> state_bytes(const config::Config& config) {
  std::vector<std::int64_t> bytes;
  for (const derive::DerivedRank& rank : derive::derived_run(config).ranks) {
    bytes.push_back(rank.bytes.total());
  }
  return bytes;
}

}  // namespace

std::optional<rules::Missing> machine_limit(const config::Config& config) {
  const bool on_cpu = config.runtime.device == config::DeviceKind::Cpu;
  if (derive::is_on_gpu(config) || !on_cpu) return std::nullopt;
  const auto memory = static_cast<double>(this_machine().memory_bytes);
  if (memory <= 0) return std::nullopt;
  const double state = of_process(config, state_bytes(config));
  // What is too large already need not be planned.
  const double kept = state > memory ? 0 : of_process(config, plan::activation_bytes(config));
  if (state + kept <= memory) return std::nullopt;
  return rules::Missing{
      .part = "room on this machine",
      .keys = {},
      .message = base::text("weights, gradients and optimizer state of the ranks of this process "
                            "take {}{}, and this machine has {}",
                            base::human_bytes(state),
                            kept > 0 ? base::text(", activations {}", base::human_bytes(kept)) : "",
                            base::human_bytes(memory)),
      .fix =
          "use a smaller model, fewer ranks or a smaller train.micro_batch_size, or spread the "
          "ranks over machines (runtime.backend=mpi)"};
}

}  // namespace weft::cli
