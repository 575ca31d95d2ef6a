// A choice for each of the ranks that share its expert: what a task does, for devices that have the
// choices and no probabilities.
#pragma once

#include "weft/kernels/kernels.h"

namespace weft::kernels::cpu {

struct Sharding {
  std::int64_t tokens = 0, k = 0;
  ExpertShards ranks;
  const std::int32_t* expert = nullptr;             // of a slot
  std::int32_t *chosen = nullptr, *copy = nullptr;  // see kernels::choose_shards
  const float* p = nullptr;                         // null: there are none
  float* chosen_p = nullptr;
};

void choose(const Sharding& sharding);

}  // namespace weft::kernels::cpu
