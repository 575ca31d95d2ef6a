// What a run has to fit in: the memory of a rank's device, and that of the machine which ranks
// share. Sizes are what a run may take: without what others have and what is kept in reserve.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weft/measure/memory_forecast.h"

namespace weft::measure {

// What a rank has of a device.
struct DeviceRoom {
  std::string name;                // "NVIDIA H200"
  std::string of = "memory";       // or "free memory", of a card at hand
  std::size_t memory_bytes = 0;    // so much of that
  std::size_t reserved_bytes = 0;  // no run can have it; see derive::reserved_gb

  std::size_t bytes() const {
    return memory_bytes > reserved_bytes ? memory_bytes - reserved_bytes : 0;
  }
};

// Where the memory of ranks lies. Device: they keep in host memory what is offloaded and what is
// copied to be saved. Host: everything, because they compute on the host's cores.
enum class RanksIn { Device, Host };

struct HostRoom {
  std::string name;  // "this machine"
  std::size_t bytes = 0;
  std::int64_t ranks = 1;  // of the run, one after the other, that share it
  RanksIn memory = RanksIn::Device;
  bool rank_zero_alone = false;  // of a pretended world the other ranks do not run
};

// What a rank on the host's cores takes beside its tensors: stacks, buffers of libraries, what a
// pool has and nobody uses. Measured: 13 MiB, of 32 and of 128 ranks of the recipe tiny.
inline constexpr std::size_t kBesideTensors = std::size_t{13} << 20;

// None of either: it is not known, and nothing is too large for it.
struct MemoryRoom {
  std::optional<DeviceRoom> device = {};
  std::optional<HostRoom> host = {};
};

// Of the rank that decides whether the run fits: the largest, or the only one that runs.
const train::PredictedMemory& deciding_stage(const MemoryForecast& forecast,
                                             const MemoryRoom& room);

// The sum over the ranks of one machine; of the machine where it is most.
std::size_t most_of_machine(const grid::Layout& layout,
                            const HostRoom& host,
                            const std::function<std::size_t(int rank, int pp_rank)>& bytes);

// What the ranks of one machine need of its memory together: of the machine that needs most.
std::size_t host_need(const MemoryForecast& forecast, const HostRoom& host);

// How much is lacking; 0 where it fits.
struct Overrun {
  std::size_t device = 0, host = 0;  // bytes of a rank, and of a machine

  bool is_none() const { return device == 0 && host == 0; }
};
// Nothing is lacking where nothing is predicted.
Overrun overrun(const MemoryForecast& forecast, const MemoryRoom& room);

// Whether weights and half of the gradients, which no saving makes smaller, are too large already.
bool is_hopeless(const MemoryForecast& forecast, const MemoryRoom& room);

}  // namespace weft::measure
