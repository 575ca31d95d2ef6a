// What the busiest rank of a pipeline waits for the others in a step, by formula: for who cannot
// run the clock (pipeline_clock.h), which takes much longer.
#pragma once

#include <vector>

#include "weft/derive/pipeline.h"

namespace weft::plan {

struct StageSeconds {
  double forward = 0, backward = 0;  // of one micro-batch
};

struct PipelineLoad {
  derive::Pipeline pipeline;
  double micro_batches = 1;
  std::vector<StageSeconds> stages;
  std::vector<double> turns;  // by rank: a micro-batch of all its stages, once the pipeline is full
  std::vector<double> work;   // by rank: all micro-batches
};

// Seconds of the rank with most work. Forwards and backwards of a rank follow one another, or are
// merged and have several chunks to turn to.
double bubble_by_formula(const PipelineLoad& load);

}  // namespace weft::plan
