// Transformers' defaults for missing keys of a config.json.
#pragma once

#include <cstdint>
#include <optional>

#include "weft/checkpoint/huggingface/huggingface_config.h"

namespace weft::checkpoint {

struct FamilyDefaults {
  std::int64_t vocab_size, hidden_size, intermediate_size, moe_intermediate_size;
  std::int64_t num_hidden_layers, num_attention_heads;
  std::optional<std::int64_t> num_key_value_heads;
  std::int64_t num_experts, num_experts_per_tok, max_position_embeddings;
  double rms_norm_eps, rope_theta;
};

FamilyDefaults defaults_of(Family family);

}  // namespace weft::checkpoint
