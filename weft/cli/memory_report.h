// `weft check --memory`: what a run will need, by a dry step of the first rank of each pipeline
// stage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/rules/validate.h"
#include "weft/train/memory_prediction.h"

namespace weft::cli {

struct MemoryReport {
  std::vector<train::PredictedMemory> stages;  // by pipeline rank; none: not predicted
  std::int64_t micro_batches = 0;              // of the step
  std::int64_t run = 0;                        // of them
};

// Of a legal run. Where a step has many micro-batches, of one with as many as keep its shape.
MemoryReport predict_memory(const config::Config& config);

// Where the GPU that hardware.* names has less than a rank needs.
std::optional<rules::Missing> gpu_limit(const config::Config& config, const MemoryReport& report);

base::Json to_json(const MemoryReport& report);
std::string to_text(const MemoryReport& report);

}  // namespace weft::cli
