// How much memory a run needs, before it runs: the engine's own step on a device that has neither
// memory nor arithmetic (kernels::make_dry_device), counted by the pool that counts a real one.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "weft/rules/judged_config.h"
#include "weft/schedule/plan.h"
#include "weft/tensor/pool.h"

namespace weft::train {

struct PredictedMemory {
  int rank = 0;
  std::array<std::size_t, tensor::kTags> peak_bytes{};  // by tensor::Tag
  std::size_t peak_total_bytes = 0;                     // of all tags at one time
};

// The peaks of one rank's steps, as `weft train` counts them; exact where every expert gets as many
// rows as any other, and with one expert-parallel rank, whatever the router does. Reading and
// saving weights come on top.
PredictedMemory predict_memory(const rules::JudgedConfig& config, int rank);

// Of the first rank of every pipeline stage.
std::vector<PredictedMemory> predict_memory(const rules::JudgedConfig& config);

}  // namespace weft::train
