// TensorBoard scalars of a run, with Megatron's tags if Megatron has the same value.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/events/event.h"
#include "weft/tensor/pool.h"
#include "weft/trace/exposure/exposure.h"
#include "weft/train/log/metrics.h"

namespace weft::train {

struct StepScalars {
  std::vector<events::Scalar> by_step;
  std::vector<events::Scalar> by_samples;  // tags end in " vs samples"
};

// `memory`: the pool of rank 0.
StepScalars step_scalars(const StepRecord& record,
                         const config::Config& config,
                         const tensor::Pool& memory);

// Losses of the step's evaluations; empty without one.
StepScalars evaluation_scalars(const StepRecord& record, const config::Config& config);

// Means over the traced steps.
std::vector<events::Scalar> exposure_scalars(const trace::Exposure& exposure);

}  // namespace weft::train
