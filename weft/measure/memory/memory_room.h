// Available memory: of a rank's device, and of the machine that ranks share. Sizes exclude other
// programs and the reserve.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weft/measure/memory/memory_forecast.h"

namespace weft::measure {

// Memory of a device for a rank.
struct DeviceRoom {
  std::string name;                // "NVIDIA H200"
  std::string of = "memory";       // "memory", or "free memory" of a present GPU
  std::size_t memory_bytes = 0;    // total of that memory
  std::size_t reserved_bytes = 0;  // unavailable to any run; see derive::reserved_gb

  std::size_t bytes() const {
    return memory_bytes > reserved_bytes ? memory_bytes - reserved_bytes : 0;
  }
};

// Place of the ranks' memory. Device: host memory holds offloaded tensors and save copies. Host:
// everything, because ranks compute on the host's cores.
enum class RanksIn { Device, Host };

struct HostRoom {
  std::string name;  // "this machine"
  std::size_t bytes = 0;
  std::int64_t ranks = 1;  // consecutive ranks of the run that share it
  RanksIn memory = RanksIn::Device;
  bool rank_zero_alone = false;  // true in a pretended world: other ranks do not run
};

// Memory of a rank on the host's cores beside its tensors: stacks, library buffers, unused memory
// of the pool. Measured: 13 MiB with 32 and with 128 ranks of the recipe tiny.
inline constexpr std::size_t kBesideTensors = std::size_t{13} << 20;

// nullopt: unknown, no limit.
struct MemoryRoom {
  std::optional<DeviceRoom> device = {};
  std::optional<HostRoom> host = {};
};

// Stage of the deciding rank: the largest, or the only one that runs.
const train::PredictedMemory& deciding_stage(const MemoryForecast& forecast,
                                             const MemoryRoom& room);

// Largest sum of `bytes` over the ranks of one machine.
std::size_t most_of_machine(const grid::Layout& layout,
                            const HostRoom& host,
                            const std::function<std::size_t(int rank, int pp_rank)>& bytes);

// Largest need of host memory of one machine's ranks.
std::size_t host_need(const MemoryForecast& forecast, const HostRoom& host);

// Missing bytes; 0: the run fits.
struct Overrun {
  std::size_t device = 0, host = 0;  // bytes of a rank, and of a machine

  bool is_none() const { return device == 0 && host == 0; }
};
// Zero if nothing is predicted.
Overrun overrun(const MemoryForecast& forecast, const MemoryRoom& room);

// True if weights and half of the gradients, which no saving reduces, exceed the room.
bool is_hopeless(const MemoryForecast& forecast, const MemoryRoom& room);

}  // namespace weft::measure
