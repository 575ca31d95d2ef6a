// What a model chooses: modules to recompute and to offload, and who dispatches.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "weft/base/text.h"
#include "weft/config/model_config.h"
#include "weft/rules/judge.h"

namespace weft::rules {

// Expert-parallel overlap: the key that most conflicts are about.
inline constexpr const char* kOverlap = "comm_overlap.overlap_moe_expert_parallel_comm";
inline bool overlaps(const Judge& judge) {
  return judge.overlap().overlap_moe_expert_parallel_comm;
}

// Whether selective recomputation runs the module again in the backward.
bool recomputes(const config::ModelConfig& model, config::RecomputeModule module);
// Whether fine-grained offload keeps the module's input in host memory.
bool offloads(const config::ModelConfig& model, config::OffloadModule module);
// Whether every expert takes its capacity of rows, so that shapes never change.
bool drops_and_pads(const config::ModelConfig& model);
// Whether no layer has a dense feed-forward; not where the layers are wrong.
bool every_layer_is_moe(const Judge& judge);
// Whether matrix products run in fp8 or fp4.
bool is_quantized(const config::ModelConfig& model);

template <typename T>
bool contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// "[attn,moe_router]", as a user types a list.
template <typename Enum>
std::string typed_list(const std::vector<Enum>& list) {
  std::vector<std::string_view> words;
  for (const Enum value : list) words.push_back(word(value));
  return base::text("[{}]", fmt::join(words, ","));
}

}  // namespace weft::rules
