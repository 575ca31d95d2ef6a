// Simulated clock of a pipeline by turns: each rank's rounds in the order of its schedule
// (schedule/builders/turns.h), with the durations of its layers.
#pragma once

#include <functional>
#include <vector>

#include "weft/derive/pipeline.h"
#include "weft/plan/cost/layer_time.h"
#include "weft/schedule/builders/turns.h"

namespace weft::plan {

// Times of a stage's turns.
struct StageTime {
  PlainTime forward;   // its `backward` is 0
  PlainTime backward;  // with the weight gradients
  double weights = 0;  // part of it that an order may delay
};

struct PipelineWork {
  derive::Pipeline pipeline;
  std::vector<schedule::PipelineShape> shapes;  // by pipeline rank
  std::vector<StageTime> stages;
  // Time of a forward of one stage merged with a backward of another on one rank. Empty: they run
  // one after the other.
  std::function<PlainTime(int forward_stage, int backward_stage)> merged;
  double send_seconds = 0;    // from a stage to the next
  bool sends_beside = false;  // true: compute continues meanwhile
};

// Times of a pipeline rank in one step.
struct RankClock {
  PlainTime work;   // all of its turns
  double pp = 0;    // exposed sends
  double idle = 0;  // waits for other stages, until the last rank ends
};

struct PipelineTime {
  double seconds = 0;
  std::vector<RankClock> ranks;

  // Rank with the most work.
  const RankClock& longest() const;
};

PipelineTime run_pipeline(const PipelineWork& work);

}  // namespace weft::plan
