// Bench of all operations except products and attention, on the shapes of a model: bytes per
// second.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/measure/device/device_rate.h"
#include "weft/measure/device/device_timer.h"

namespace weft::measure {

struct KernelShapes {
  std::int64_t tokens = 0, hidden = 0, experts = 0, topk = 0, expert_width = 0, vocabulary = 0;
  std::int64_t sequence = 0, heads = 0, head_width = 0;
  std::int64_t logit_rows = 0;  // tokens in the head's operations
  std::int64_t parameters = 0;  // parameters of the optimizer's operations
};
// Shapes of one micro-batch of a run. Logits cover at most 4096 tokens; the optimizer has 2^28
// parameters, enough for a rate.
KernelShapes kernel_shapes(const config::Config& config);

// Called before each operation.
using NoteOperation = std::function<void(const std::string& name)>;

std::vector<DeviceRate> bench_kernels(DeviceTimer& timer,
                                      const KernelShapes& shapes,
                                      const NoteOperation& note);

}  // namespace weft::measure
