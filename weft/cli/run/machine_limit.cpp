#include "weft/cli/run/machine_limit.h"

#include "weft/base/casts.h"
#include "weft/base/text.h"
#include "weft/cli/memory/memory_limit.h"
#include "weft/cli/memory/memory_report.h"
#include "weft/cli/run/run_room.h"
#include "weft/derive/derived.h"
#include "weft/derive/derived_run.h"
#include "weft/plan/memory/step_memory.h"

namespace weft::cli {
namespace {

using measure::HostRoom;
using measure::MemoryRoom;
using measure::RanksIn;

// Factor of free memory over the least need at which counting is unnecessary.
constexpr std::size_t kAmple = 2;
constexpr std::int64_t kMostTokens = 1 << 24;  // tokens of a micro-batch

std::size_t sum_of(const config::Config& config,
                   const HostRoom& host,
                   const std::vector<std::int64_t>& by_stage) {
  return measure::most_of_machine(derive::layout_of(config), host, [&](int, int pp_rank) {
    return static_cast<std::size_t>(by_stage[base::at(pp_rank)]);
  });
}

}  // namespace

bool uses_host_beside(const config::Config& config) {
  return config.model.fine_grained_activation_offloading ||
         config.optimizer.optimizer_cpu_offload || derive::saves_beside(config);
}

std::size_t least_need(const config::Config& config, const HostRoom& host) {
  std::vector<std::int64_t> state;
  for (const derive::DerivedRank& rank : derive::derived_run(config).ranks) {
    state.push_back(rank.bytes.total() + rank.bytes.offloaded +
                    std::int64_t(host.memory == RanksIn::Host ? measure::kBesideTensors : 0));
  }
  const std::size_t need = sum_of(config, host, state);
  // Too large already: no planning needed.
  if (need > host.bytes) return need;
  const std::vector<std::int64_t> kept = plan::activation_bytes(config);
  return kept.empty() ? need : need + sum_of(config, host, kept);
}

bool is_ample(const config::Config& config, const MemoryRoom& room) {
  if (room.device) return false;
  if (!room.host) return true;
  if (room.host->memory == RanksIn::Device) return !uses_host_beside(config);
  return !uses_host_beside(config) && kAmple * least_need(config, *room.host) <= room.host->bytes;
}

bool is_countable(const config::Config& config) {
  return config.train.micro_batch_size <= kMostTokens / config.model.seq_length;
}

std::optional<rules::Missing> machine_limit(const config::Config& config) {
  MemoryRoom room = host_room_here(config);
  if (is_ample(config, room)) return std::nullopt;
  if (const auto limit = least_limit(config, room)) return limit->missing;
  if (!is_countable(config)) return std::nullopt;
  const MemoryReport report{.forecast = measure::forecast_memory(config, measure::Priced::No),
                            .room = room};
  const std::vector<MemoryLimit> limits = memory_limits(report, config);
  return limits.empty() ? std::nullopt : std::optional(limits.front().missing);
}

}  // namespace weft::cli
