#include "weft/cli/run/run_room.h"

#include <algorithm>
#include <cmath>

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/cli/run/free_memory.h"
#include "weft/cli/run/launcher.h"
#include "weft/derive/derived.h"
#include "weft/derive/gpu.h"
#include "weft/kernels/device.h"

namespace weft::cli {
namespace {

using measure::DeviceRoom;
using measure::HostRoom;
using measure::MemoryRoom;
using measure::RanksIn;

// Usable share of the free host memory; the rest is for the program itself.
constexpr double kFreeShare = 0.95;

// Divisor of a present GPU's memory that limits the reserve.
constexpr std::int64_t kPartsOfCard = 16;

std::int64_t ranks_of_machine(const config::Config& config) {
  const std::int64_t world = derive::layout_of(config).world;
  const std::int64_t gpus = derive::gpu_facts(config.hardware).gpus_per_node;
  const std::int64_t likely = derive::is_on_gpu(config) ? gpus : world;
  return std::clamp<std::int64_t>(config.runtime.ranks_per_node.value_or(likely), 1, world);
}

bool is_on_cards(const config::Config& config) {
  return derive::is_on_gpu(config) || config.runtime.device == config::DeviceKind::Cuda;
}

std::optional<DeviceRoom> named_device(const config::Config& config) {
  const derive::GpuFacts gpu = derive::gpu_facts(config.hardware);
  if (!gpu.memory_gb) return std::nullopt;
  const auto bytes = static_cast<std::size_t>(std::llround(*gpu.memory_gb * 1e9));
  return DeviceRoom{.name = gpu.name,
                    .memory_bytes = bytes,
                    .reserved_bytes = bytes - *derive::usable_bytes(gpu)};
}

}  // namespace

std::int64_t ranks_here(const config::Config& config) {
  if (config.runtime.backend == config::CommBackend::Threads) {
    return derive::layout_of(config).world;
  }
  if (config::is_pretended(config.runtime.backend)) return 1;
  const std::int64_t started = launcher_local_size().value_or(ranks_of_machine(config));
  return std::min(started, derive::layout_of(config).world);
}

std::optional<DeviceRoom> device_room(const std::vector<kernels::Gpu>& cards,
                                      std::int64_t ranks,
                                      config::CommBackend backend) {
  std::optional<DeviceRoom> least;
  const std::int64_t count = std::ssize(cards);
  for (std::int64_t i = 0; i < std::min(count, ranks); ++i) {
    const kernels::Gpu& card = cards[base::at(i)];
    if (!card.why_not.empty()) continue;
    const std::int64_t sharing = (ranks - i + count - 1) / count;
    const std::int64_t reserve =
        std::min(static_cast<std::int64_t>(derive::reserved_gb(card.major) * 1e9),
                 card.memory_bytes / kPartsOfCard);
    // Every process has a context of its own; threads of one process share it.
    const std::int64_t for_rank = config::are_processes(backend) ? reserve : reserve / sharing;
    DeviceRoom room{.name = card.name,
                    .of = "free memory",
                    .memory_bytes = static_cast<std::size_t>(card.free_bytes / sharing),
                    .reserved_bytes = static_cast<std::size_t>(for_rank)};
    if (sharing > 1) room.name += base::text(", which {} ranks share", sharing);
    if (!least || room.bytes() < least->bytes()) least = std::move(room);
  }
  return least;
}

MemoryRoom host_room_here(const config::Config& config) {
  const std::optional<std::int64_t> free = free_memory_bytes();
  if (!free) return {};
  return {.host = HostRoom{.name = "this machine",
                           .bytes = static_cast<std::size_t>(kFreeShare * base::number(*free)),
                           .ranks = ranks_here(config),
                           .memory = is_on_cards(config) ? RanksIn::Device : RanksIn::Host,
                           .rank_zero_alone = config::is_pretended(config.runtime.backend)}};
}

MemoryRoom room_here(const config::Config& config) {
  MemoryRoom room = host_room_here(config);
  if (!is_on_cards(config)) return room;
  room.device = device_room(kernels::gpu_report().gpus, ranks_here(config), config.runtime.backend);
  if (!room.device) room.device = named_device(config);
  return room;
}

MemoryRoom judged_room(const config::Config& config) {
  if (!derive::is_on_gpu(config)) return room_here(config);
  MemoryRoom room{.device = named_device(config)};
  const derive::GpuFacts gpu = derive::gpu_facts(config.hardware);
  if (gpu.host_memory_gb) {
    room.host = HostRoom{
        .name = base::text("a machine of {}", base::human_bytes(*gpu.host_memory_gb * 1e9)),
        .bytes = static_cast<std::size_t>(derive::kHostMemoryFree * *gpu.host_memory_gb * 1e9),
        .ranks = ranks_of_machine(config)};
  }
  return room;
}

}  // namespace weft::cli
