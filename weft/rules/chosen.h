// Queries on a model's choices: recomputed and offloaded modules, dispatcher.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "weft/base/text.h"
#include "weft/config/model_config.h"
#include "weft/rules/judge.h"

namespace weft::rules {

// Switch of expert-parallel overlap, the subject of most conflicts.
inline constexpr const char* kOverlap = "comm_overlap.overlap_moe_expert_parallel_comm";
inline bool overlaps(const Judge& judge) {
  return judge.overlap().overlap_moe_expert_parallel_comm;
}

// True if selective recomputation recomputes the module.
bool recomputes(const config::ModelConfig& model, config::RecomputeModule module);
// True if fine-grained offload moves the module's input to host memory.
bool offloads(const config::ModelConfig& model, config::OffloadModule module);
// True if every expert takes exactly its capacity of rows, so that shapes never change.
bool drops_and_pads(const config::ModelConfig& model);
// True if every layer is a MoE layer; false if the layers are invalid.
bool every_layer_is_moe(const Judge& judge);
// True if GEMMs run in fp8 or fp4.
bool is_quantized(const config::ModelConfig& model);

template <typename T>
bool contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// "[attn,moe_router]", the form that a user types.
template <typename Enum>
std::string typed_list(const std::vector<Enum>& list) {
  std::vector<std::string_view> words;
  for (const Enum value : list) words.push_back(word(value));
  return base::text("[{}]", fmt::join(words, ","));
}

}  // namespace weft::rules
