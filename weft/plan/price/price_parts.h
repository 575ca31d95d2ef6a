// Parts of a step's price, by formula (price.cpp) or simulation (simulated_price.cpp).
#pragma once

#include "weft/plan/cost/layer_time.h"
#include "weft/plan/price/data_parallel_price.h"
#include "weft/plan/price/price.h"

namespace weft::plan {

// Times of the pipeline rank with the most work.
struct StepSeconds {
  PlainTime work;     // all micro-batches
  double bubble = 0;  // idle
  double dp = 0;      // exposed exchanges of data-parallel ranks
  double pp = 0;      // exposed sends between stages
  OptimizerSeconds optimizer;

  double total() const {
    return work.total() + bubble + dp + pp + optimizer.device + optimizer.waiting;
  }
};

// `compute`: in ms; the optimizer is added to it.
Price compose_price(const config::Config& config,
                    const Hardware& hardware,
                    const StepSeconds& seconds,
                    const ComputeMs& compute,
                    double flops_per_token);

// Time of one micro-batch's transfer from a stage to the next.
double stage_send_seconds(const config::Config& config, const Hardware& hardware);

}  // namespace weft::plan
