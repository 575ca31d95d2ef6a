#include "weft/measure/memory/memory_room.h"

#include <algorithm>
#include <ranges>

#include "weft/base/casts.h"
#include "weft/grid/grid.h"

namespace weft::measure {
namespace {

std::size_t beyond(std::size_t need, std::size_t room) { return need > room ? need - room : 0; }

std::size_t bytes_of(const train::PredictedMemory& stage, tensor::Tag tag) {
  return stage.peak_bytes[static_cast<std::size_t>(tag)];
}

std::size_t least_of(const train::PredictedMemory& stage) {
  return bytes_of(stage, tensor::Tag::Weights) + bytes_of(stage, tensor::Tag::Gradients) / 2;
}

}  // namespace

const train::PredictedMemory& deciding_stage(const MemoryForecast& forecast,
                                             const MemoryRoom& room) {
  return room.host && room.host->rank_zero_alone ? forecast.stages.front() : forecast.largest();
}

std::size_t most_of_machine(const grid::Layout& layout,
                            const HostRoom& host,
                            const std::function<std::size_t(int rank, int pp_rank)>& bytes) {
  const grid::Grid grid(layout);
  std::size_t most = 0, here = 0;
  const int world = host.rank_zero_alone ? 1 : grid.world();
  for (int rank = 0; rank < world; ++rank) {
    if (rank % host.ranks == 0) here = 0;
    here += bytes(rank, grid.coordinate(rank).pp);
    most = std::max(most, here);
  }
  return most;
}

std::size_t host_need(const MemoryForecast& forecast, const HostRoom& host) {
  return most_of_machine(forecast.layout, host, [&](int rank, int pp_rank) {
    const train::PredictedMemory& stage = forecast.stages[base::at(pp_rank)];
    std::size_t need = bytes_of(stage, tensor::Tag::Offloaded);
    if (host.memory == RanksIn::Host) need += stage.peak_total_bytes + kBesideTensors;
    if (!forecast.snapshots.empty()) need += forecast.snapshots[base::at(rank)];
    return need;
  });
}

Overrun overrun(const MemoryForecast& forecast, const MemoryRoom& room) {
  Overrun lacking;
  if (!forecast.is_predicted()) return lacking;
  if (room.device) {
    lacking.device = beyond(deciding_stage(forecast, room).peak_total_bytes, room.device->bytes());
  }
  if (room.host) lacking.host = beyond(host_need(forecast, *room.host), room.host->bytes);
  return lacking;
}

bool is_hopeless(const MemoryForecast& forecast, const MemoryRoom& room) {
  if (!forecast.is_predicted()) return false;
  const bool is_alone = room.host && room.host->rank_zero_alone;
  const auto too_large = [&](const train::PredictedMemory& stage) {
    return room.device && least_of(stage) > room.device->bytes();
  };
  const auto running =
      forecast.stages | std::views::take(is_alone ? 1 : std::ssize(forecast.stages));
  if (std::ranges::any_of(running, too_large)) return true;
  if (!room.host || room.host->memory == RanksIn::Device) return false;
  const auto least = [&](int, int pp_rank) { return least_of(forecast.stages[base::at(pp_rank)]); };
  return most_of_machine(forecast.layout, *room.host, least) > room.host->bytes;
}

}  // namespace weft::measure
