// Forecast of a run's memory at any scale, and of its step time at nominal costs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/grid/layout.h"
#include "weft/train/guard/memory_prediction.h"

namespace weft::measure {

// Forecast of a counted run. Parts missing in this build are left out. A step of many micro-batches
// is shortened to the fewest with the same order, since kept memory repeats.
struct MemoryForecast {
  std::vector<train::PredictedMemory> stages;  // first rank of each pipeline stage
  std::int64_t micro_batches = 0;              // in the step
  std::int64_t run = 0;                        // in the counted step
  std::vector<std::string> left_out;  // "not built yet: ...", and reasons why nothing is predicted
  double step_seconds = 0;            // for all micro-batches; 0: not priced
  std::string offload;                // see schedule::offload_text
  grid::Layout layout = {};           // layout of its ranks
  // Host memory of each rank for the copy of an asynchronous save; empty: no such copy.
  std::vector<std::size_t> snapshots = {};

  bool is_predicted() const { return !stages.empty(); }
  // Index of the rank that decides whether the run fits.
  std::size_t largest_stage() const;
  const train::PredictedMemory& largest() const { return stages[largest_stage()]; }
  std::size_t peak_bytes() const { return largest().peak_total_bytes; }
  // Largest host memory of a rank: offloaded tensors and save copies.
  std::size_t host_bytes() const;
};

enum class Priced { No, Yes };

// `asked`: a legal config as the user wrote it, before the rules set anything. Priced at the
// nominal rates of its GPU.
MemoryForecast forecast_memory(const config::Config& asked, Priced priced);

// Counts only these pipeline ranks, in their order; without step time, snapshots and `left_out`.
// Empty: not predicted.
std::vector<train::PredictedMemory> count_ranks(const config::Config& asked,
                                                const std::vector<int>& pp_ranks);

// Parts of the run that are not counted.
std::vector<std::string> left_out_of(const config::Config& asked);
// Host memory of each rank for the copy of an asynchronous save; empty: no such copy.
std::vector<std::size_t> snapshots_of(const config::Config& asked);

// forecast_memory or a substitute; see memory_estimate.h.
using Forecaster = std::function<MemoryForecast(const config::Config& asked, Priced priced)>;

// Cost of forecast_memory: layers times micro-batches of its dry step.
std::int64_t dry_layers(const config::Config& asked);

}  // namespace weft::measure
