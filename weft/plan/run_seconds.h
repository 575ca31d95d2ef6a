// What the operations of a calibrated run took, and the kernels that the planner counts for them.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/plan/calibration.h"
#include "weft/plan/kernel_work.h"

namespace weft::plan {

// Of all micro-batches of a step and all pipeline ranks, without what is computed again. Seconds
// are those of an untraced step.
struct RunSeconds {
  double products = 0, attention_forward = 0, attention_backward = 0;
  double memory_bytes = 0, memory_calls = 0;      // seconds that go with bytes, and with calls
  double dispatches = 0;                          // that tokens travel, there or back
  double dispatch_calls = 0, dispatch_bytes = 0;  // seconds, as those of memory
};
RunSeconds run_seconds(const config::Config& config, const Calibration& calibration);

// The same nodes' kernels. How often each runs in a step goes with all of them alike.
struct RunKernels {
  std::vector<Kernel> kernels;  // of one micro-batch
  double micro_batches = 0;
};
RunKernels run_kernels(const config::Config& config);

}  // namespace weft::plan
