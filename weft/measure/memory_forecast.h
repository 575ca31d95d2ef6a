// The memory of a run of any size before it runs, and its step at nominal costs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/grid/layout.h"
#include "weft/train/memory_prediction.h"

namespace weft::measure {

// A run as it is counted: parts that this build lacks are left out, and a step of many
// micro-batches is shortened to as many as keep its order, because what is kept repeats.
struct MemoryForecast {
  std::vector<train::PredictedMemory> stages;  // of the first rank of each pipeline rank
  std::int64_t micro_batches = 0;              // of the step
  std::int64_t run = 0;                        // of them
  std::vector<std::string> left_out;           // "not built yet: ...", and why nothing is predicted
  double step_seconds = 0;                     // of all micro-batches; 0: not priced
  std::string offload;                         // see schedule::offload_text
  grid::Layout layout = {};                    // of its ranks
  // Host memory of each rank for the copy of an asynchronous save; empty: there is none.
  std::vector<std::size_t> snapshots = {};

  bool is_predicted() const { return !stages.empty(); }
  // The rank that decides whether the run fits.
  std::size_t largest_stage() const;
  const train::PredictedMemory& largest() const { return stages[largest_stage()]; }
  std::size_t peak_bytes() const { return largest().peak_total_bytes; }
  // Of the rank that has most in host memory: what is offloaded, and copies to save.
  std::size_t host_bytes() const;
};

enum class Priced { No, Yes };

// `asked`: as the user wrote it, before the rules set anything; legal. Priced at the nominal rates
// of its GPU.
MemoryForecast forecast_memory(const config::Config& asked, Priced priced);

// The same of these pipeline ranks alone, in their order; without step time, snapshots and
// `left_out`. Nothing where the run is not predicted.
std::vector<train::PredictedMemory> count_ranks(const config::Config& asked,
                                                const std::vector<int>& pp_ranks);

// What of the run is not counted.
std::vector<std::string> left_out_of(const config::Config& asked);
// Host memory of each rank for the copy of an asynchronous save; nothing where there is none.
std::vector<std::size_t> snapshots_of(const config::Config& asked);

// forecast_memory, or another way to its answer; see memory_estimate.h.
using Forecaster = std::function<MemoryForecast(const config::Config& asked, Priced priced)>;

// Layers times micro-batches of the step that forecast_memory takes: how long it takes.
std::int64_t dry_layers(const config::Config& asked);

}  // namespace weft::measure
