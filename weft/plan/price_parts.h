// What a step's price is made of, by formula (price.cpp) or on the clock (simulated_price.cpp).
#pragma once

#include "weft/plan/data_parallel_price.h"
#include "weft/plan/layer_time.h"
#include "weft/plan/price.h"

namespace weft::plan {

// Of the pipeline rank that works longest.
struct StepSeconds {
  PlainTime work;     // of all micro-batches
  double bubble = 0;  // nothing to do
  double dp = 0;      // exchanges of data-parallel ranks that nothing hides
  double pp = 0;      // sends between stages, the same
  OptimizerSeconds optimizer;

  double total() const {
    return work.total() + bubble + dp + pp + optimizer.device + optimizer.waiting;
  }
};

// `compute` is in ms already; the optimizer is added to it.
Price compose_price(const config::Config& config,
                    const Hardware& hardware,
                    const StepSeconds& seconds,
                    const ComputeMs& compute);

// One micro-batch from a stage to the next.
double stage_send_seconds(const config::Config& config, const Hardware& hardware);

}  // namespace weft::plan
