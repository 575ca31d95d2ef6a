// What a run shows in TensorBoard, under Megatron's tags where Megatron has the thing.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/events/event.h"
#include "weft/tensor/pool.h"
#include "weft/trace/exposure.h"
#include "weft/train/metrics.h"

namespace weft::train {

struct StepScalars {
  std::vector<events::Scalar> by_step;
  std::vector<events::Scalar> by_samples;  // tags end in " vs samples"
};

// `memory`: of rank 0.
StepScalars step_scalars(const StepRecord& record,
                         const config::Config& config,
                         const tensor::Pool& memory);

// Of a step that evaluated; else nothing.
StepScalars evaluation_scalars(const StepRecord& record, const config::Config& config);

// Of the traced steps, in the mean.
std::vector<events::Scalar> exposure_scalars(const trace::Exposure& exposure);

}  // namespace weft::train
