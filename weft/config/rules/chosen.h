// What a model chooses: modules to recompute, to offload and to capture, and who dispatches.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "weft/base/text.h"
#include "weft/config/model_config.h"

namespace weft::config {

// Whether selective recomputation runs the module again in the backward.
bool recomputes(const ModelConfig& model, RecomputeModule module);
// Whether fine-grained offload keeps the module's input in host memory.
bool offloads(const ModelConfig& model, OffloadModule module);
// Whether a part of a layer is named for capture. A whole layer and a whole iteration are not
// named.
bool captures(const ModelConfig& model, CudaGraphScope scope);
// Whether the attention is inside a graph: by name, or with its layer or its iteration.
bool captures_attention(const ModelConfig& model);
// Whether matrix products run in fp8 or fp4.
bool is_quantized(const ModelConfig& model);

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

}  // namespace weft::config
