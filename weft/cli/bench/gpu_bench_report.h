// Report of `weft bench gpu`: rates against the GPU's ceilings and against PyTorch, the step, and
// bars.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/kernels/hopper_tile.h"
#include "weft/measure/device/card_clock.h"
#include "weft/measure/device/device_ceilings.h"
#include "weft/measure/device/device_rate.h"
#include "weft/measure/device/device_step.h"
#include "weft/report/document/document.h"

namespace weft::cli {

enum class GpuSection { Kernels, Products, Attention };
std::string_view word(GpuSection section);

// Rate of an operation with its references.
struct GpuLine {
  GpuSection section = GpuSection::Kernels;
  measure::DeviceRate rate;
  double ceiling = 0;                  // per second, in the unit of the rate
  std::optional<double> peer_seconds;  // peer's time for the same work
  std::string peer;                    // "PyTorch cudnn"
  std::optional<double> least_share;   // share of the ceiling
  std::optional<double> least_ratio;   // ratio to the peer's rate
  std::optional<double> least_rate;    // units per second

  double share() const { return rate.per_second() / ceiling; }
  std::optional<double> ratio() const {
    if (!peer_seconds) return std::nullopt;
    return *peer_seconds / rate.seconds;
  }
};

// Choice of a tile for an expert product, with all candidates.
struct GpuTile {
  std::string name;  // "FC1"
  kernels::hopper::TileDesc desc;
  kernels::hopper::TileChoice choice;
};

struct StepPeer {
  std::string name;  // "Transformers 5.17.0 + torch.compile, sdpa, cuDNN"
  std::optional<double> whole_seconds, single_seconds;
  double loss_difference = 0;
};

// GPU clock during parts of the bench.
struct GpuClock {
  struct Part {
    std::string name;
    measure::ClockSpan span;
  };
  double most_mhz = 0, most_watts = 0;
  std::vector<Part> parts;
};

struct GpuBench {
  std::string card, model;
  measure::DeviceCeilings ceilings;
  std::optional<GpuClock> clock;  // nullopt: the driver does not report it
  std::vector<GpuLine> lines;
  std::vector<GpuTile> tiles;  // tiles of the experts' products, on Hopper
  std::optional<measure::DeviceStep> step;
  std::optional<StepPeer> step_peer;
  std::vector<std::string> peer_failures;  // requested peers only
};

// Bars for measured parts. A bar against a peer requires the peer.
std::vector<report::Bar> bars_of(const GpuBench& bench);

report::Document document_of(const GpuBench& bench);

}  // namespace weft::cli
