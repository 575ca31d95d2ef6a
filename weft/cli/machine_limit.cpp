#include "weft/cli/machine_limit.h"

#include <algorithm>
#include <cmath>

#include "weft/base/text.h"
#include "weft/cli/machine.h"
#include "weft/derive/derived.h"
#include "weft/derive/derived_run.h"
#include "weft/plan/step_memory.h"

namespace weft::cli {
namespace {

constexpr double kHundredths = 100;  // of a share, in advice

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

std::vector<std::int64_t> bytes_by_stage(const config::Config& config,
                                         std::int64_t (*bytes)(const derive::StateBytes&)) {
  std::vector<std::int64_t> all;
  for (const derive::DerivedRank& rank : derive::derived_run(config).ranks) {
    all.push_back(bytes(rank.bytes));
  }
  return all;
}

// Ranks with GPUs keep in host memory what is offloaded; on this machine there may be several.
std::optional<rules::Missing> host_limit(const config::Config& config) {
  if (config.runtime.device != config::DeviceKind::Cuda) return std::nullopt;
  double needed = of_process(config, bytes_by_stage(config, [](const derive::StateBytes& bytes) {
                               return bytes.offloaded;
                             }));
  const std::optional<std::int64_t> free = free_memory_bytes();
  if (needed == 0 || !free) return std::nullopt;
  if (config.runtime.backend != config::CommBackend::Threads) {
    const std::int64_t world = derive::layout_of(config).world;
    const bool is_alone = config::is_pretended(config.runtime.backend);
    needed *=
        is_alone
            ? 1
            : static_cast<double>(std::min(world, config.runtime.ranks_per_node.value_or(world)));
  }
  const auto room = static_cast<double>(*free);
  if (needed <= room) return std::nullopt;
  return rules::Missing{
      .part = "room in host memory",
      .keys = {"optimizer.optimizer_offload_fraction"},
      .message =
          base::text("the optimizer state that ranks of this machine offload takes {}, and {} "
                     "of its memory is free",
                     base::human_bytes(needed),
                     base::human_bytes(room)),
      .fix = base::text(
          "use optimizer.optimizer_offload_fraction={:.2f} or less",
          std::floor(config.optimizer.optimizer_offload_fraction * room / needed * kHundredths) /
              kHundredths)};
}

}  // namespace

std::optional<rules::Missing> machine_limit(const config::Config& config) {
  const bool on_cpu = config.runtime.device == config::DeviceKind::Cpu;
  if (derive::is_on_gpu(config) || !on_cpu) return host_limit(config);
  const auto memory = static_cast<double>(this_machine().memory_bytes);
  if (memory <= 0) return std::nullopt;
  const double state =
      of_process(config, bytes_by_stage(config, [](const derive::StateBytes& bytes) {
                   return bytes.total() + bytes.offloaded;
                 }));
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
