// Modes of a run beyond a plain one, whose price needs a measurement.
#pragma once

#include <set>
#include <string_view>

#include "weft/config/config.h"

namespace weft::plan {

enum class RunMode {
  Merged,           // expert-parallel overlap
  DelayedWgrad,     // delayed weight gradients
  RouterGraphs,     // CUDA graphs of parts of layers without attention
  AttentionGraphs,  // CUDA graphs of parts of layers with attention
  WholeGraphs,      // CUDA graph of the whole iteration
  Offload,          // activations in host memory
  HostState,        // optimizer state in host memory
  FullRecompute,    // whole layers are recomputed
  ExpertShards,     // experts split over ranks (etp > 1)
  ContextParallel,  // sequences split over ranks (cp > 1)
  FullSharding,
};

std::string_view word(RunMode mode);

std::set<RunMode> modes_of(const config::Config& config);

}  // namespace weft::plan
