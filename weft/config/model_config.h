// What is computed: the part of the config the model sees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/enums.h"

namespace weft::config {

struct ModelConfig {
#define WEFT_FIELD(type, name, initial, meaning, unit) type name = initial;
#include "weft/config/fields/model.def"
#undef WEFT_FIELD

  std::int64_t head_dim() const { return kv_channels.value_or(hidden_size / num_attention_heads); }
  std::int64_t query_groups() const { return num_query_groups.value_or(num_attention_heads); }
  std::int64_t query_width() const { return num_attention_heads * head_dim(); }
  std::int64_t key_width() const { return query_groups() * head_dim(); }
  std::int64_t local_experts() const { return num_moe_experts / expert_model_parallel_size; }
  bool is_moe_layer(std::int64_t layer) const;
  std::int64_t moe_layers() const;
};

}  // namespace weft::config
