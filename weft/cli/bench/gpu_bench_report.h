// What `weft bench gpu` says: rates against the card's ceilings and against PyTorch, the step, and
// whether the bars were met.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/cli/terminal/bar.h"
#include "weft/measure/device/card_clock.h"
#include "weft/measure/device/device_ceilings.h"
#include "weft/measure/device/device_rate.h"
#include "weft/measure/device/device_step.h"

namespace weft::cli {

enum class GpuSection { Kernels, Products, Attention };
std::string_view word(GpuSection section);

// What an operation reached, and what it is held against.
struct GpuLine {
  GpuSection section = GpuSection::Kernels;
  measure::DeviceRate rate;
  double ceiling = 0;                  // of the same unit a second
  std::optional<double> peer_seconds;  // for the same work
  std::string peer;                    // "PyTorch cudnn"
  std::optional<double> least_share;   // of the ceiling
  std::optional<double> least_ratio;   // to the peer's rate
  std::optional<double> least_rate;    // in its unit a second

  double share() const { return rate.per_second() / ceiling; }
  std::optional<double> ratio() const {
    if (!peer_seconds) return std::nullopt;
    return *peer_seconds / rate.seconds;
  }
};

struct StepPeer {
  std::string name;  // "Transformers 5.17.0 + torch.compile, sdpa, cuDNN"
  std::optional<double> whole_seconds, single_seconds;
  double loss_difference = 0;
};

// The card's clock while parts of the bench ran.
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
  std::optional<GpuClock> clock;  // where the driver tells it
  std::vector<GpuLine> lines;
  std::optional<measure::DeviceStep> step;
  std::optional<StepPeer> step_peer;
  std::vector<std::string> peer_failures;  // of those that were asked for
};

// Those of what was measured. A bar against a peer needs the peer.
std::vector<Bar> bars_of(const GpuBench& bench);

std::string to_text(const GpuBench& bench);
base::Json to_json(const GpuBench& bench);

}  // namespace weft::cli
