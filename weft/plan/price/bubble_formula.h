// Pipeline bubble of the busiest rank by formula, a fast substitute for the simulated clock
// (pipeline_clock.h).
#pragma once

#include <vector>

#include "weft/derive/pipeline.h"

namespace weft::plan {

struct StageSeconds {
  double forward = 0, backward = 0;  // per micro-batch
};

struct PipelineLoad {
  derive::Pipeline pipeline;
  double micro_batches = 1;
  std::vector<StageSeconds> stages;
  std::vector<double> turns;  // by rank: one micro-batch through all its stages in the steady state
  std::vector<double> work;   // by rank: all micro-batches
};

// Bubble in seconds of the rank with most work. Its forwards and backwards either alternate, or are
// merged over several chunks.
double bubble_by_formula(const PipelineLoad& load);

}  // namespace weft::plan
