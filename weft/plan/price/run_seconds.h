// Operation times of a calibrated run, and the planner's kernels for them.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/cost/kernel_work.h"
#include "weft/plan/hardware/calibration.h"

namespace weft::plan {

// Sums over all micro-batches of a step and all pipeline ranks, without recomputation. Seconds are
// those of an untraced step.
struct RunSeconds {
  double products = 0, attention_forward = 0, attention_backward = 0;
  double memory_bytes = 0, memory_calls = 0;      // seconds proportional to bytes, and to calls
  double dispatches = 0;                          // trips of tokens, there or back
  double dispatch_calls = 0, dispatch_bytes = 0;  // seconds, split as for memory
};
RunSeconds run_seconds(const config::Config& config, const Calibration& calibration);

// Kernels of the same nodes, each with the same count per step.
struct RunKernels {
  std::vector<Kernel> kernels;  // per micro-batch
  double micro_batches = 0;
};
RunKernels run_kernels(const config::Config& config);

}  // namespace weft::plan
