// Body of choose_shards, one choice per rank that shares the expert. Dry devices call it without
// probabilities.
#pragma once

#include "weft/kernels/kernels.h"

namespace weft::kernels::cpu {

struct Sharding {
  std::int64_t tokens = 0, k = 0;
  ExpertShards ranks;
  const std::int32_t* expert = nullptr;             // expert of each slot
  std::int32_t *chosen = nullptr, *copy = nullptr;  // see kernels::choose_shards
  const float* p = nullptr;                         // nullptr: no probabilities
  float* chosen_p = nullptr;
};

void choose(const Sharding& sharding);

}  // namespace weft::kernels::cpu
