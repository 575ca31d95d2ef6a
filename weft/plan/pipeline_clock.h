// A pipeline on the clock, turn by turn: the rounds of every rank in the order of its schedule
// (schedule/builders/turns.h), each as long as its layers take.
#pragma once

#include <functional>
#include <vector>

#include "weft/derive/pipeline.h"
#include "weft/plan/layer_time.h"
#include "weft/schedule/builders/turns.h"

namespace weft::plan {

// Of a stage: what its turns take.
struct StageTime {
  PlainTime forward;   // `backward` of it is 0
  PlainTime backward;  // with the weight gradients
  double weights = 0;  // of it, seconds that an order may put off
};

struct PipelineWork {
  derive::Pipeline pipeline;
  std::vector<schedule::PipelineShape> shapes;  // by pipeline rank
  std::vector<StageTime> stages;
  // A forward of one stage merged with a backward of another, of one rank; none: they run one after
  // the other.
  std::function<PlainTime(int forward_stage, int backward_stage)> merged;
  double send_seconds = 0;    // from a stage to the next
  bool sends_beside = false;  // compute goes on meanwhile
};

// Of a pipeline rank in one step.
struct RankClock {
  PlainTime work;   // of all its turns
  double pp = 0;    // sends that nothing hides
  double idle = 0;  // waits for other stages, until the last rank ends
};

struct PipelineTime {
  double seconds = 0;
  std::vector<RankClock> ranks;

  // The one that works longest.
  const RankClock& longest() const;
};

PipelineTime run_pipeline(const PipelineWork& work);

}  // namespace weft::plan
