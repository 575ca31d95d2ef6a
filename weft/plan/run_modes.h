// What a run has beyond a plain one: modes whose price stands or falls with a measurement of them.
#pragma once

#include <set>
#include <string_view>

#include "weft/config/config.h"

namespace weft::plan {

enum class RunMode {
  Merged,           // expert-parallel overlap
  DelayedWgrad,     // weight gradients put off
  RouterGraphs,     // CUDA graphs of parts of layers, attention not among them
  AttentionGraphs,  // the same with attention
  WholeGraphs,      // of the whole iteration
  Offload,          // activations in the host's memory
  HostState,        // optimizer state there
  FullRecompute,    // whole layers run again
  ExpertShards,     // experts cut into parts (etp > 1)
  ContextParallel,  // sequences cut into parts (cp > 1)
  FullSharding,
};

std::string_view word(RunMode mode);

std::set<RunMode> modes_of(const config::Config& config);

}  // namespace weft::plan
