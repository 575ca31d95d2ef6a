#include "weft/checkpoint/huggingface/huggingface_defaults.h"

namespace weft::checkpoint {

FamilyDefaults defaults_of(Family family) {
  switch (family) {
    case Family::Qwen3Moe:
      return {.vocab_size = 151936,
              .hidden_size = 2048,
              .intermediate_size = 6144,
              .moe_intermediate_size = 768,
              .num_hidden_layers = 24,
              .num_attention_heads = 32,
              .num_key_value_heads = 4,
              .num_experts = 128,
              .num_experts_per_tok = 8,
              .max_position_embeddings = 32768,
              .rms_norm_eps = 1e-6,
              .rope_theta = 1e4};
    case Family::Mixtral:
      return {.vocab_size = 32000,
              .hidden_size = 4096,
              .intermediate_size = 14336,
              .moe_intermediate_size = 14336,
              .num_hidden_layers = 32,
              .num_attention_heads = 32,
              .num_key_value_heads = 8,
              .num_experts = 8,
              .num_experts_per_tok = 2,
              .max_position_embeddings = 131072,
              .rms_norm_eps = 1e-5,
              .rope_theta = 1e6};
    case Family::Olmoe:
      return {.vocab_size = 50304,
              .hidden_size = 2048,
              .intermediate_size = 2048,
              .moe_intermediate_size = 2048,
              .num_hidden_layers = 16,
              .num_attention_heads = 16,
              .num_key_value_heads = std::nullopt,
              .num_experts = 64,
              .num_experts_per_tok = 8,
              .max_position_embeddings = 4096,
              .rms_norm_eps = 1e-5,
              .rope_theta = 1e4};
    case Family::DeepseekV3:
      return {.vocab_size = 129280,
              .hidden_size = 7168,
              .intermediate_size = 18432,
              .moe_intermediate_size = 2048,
              .num_hidden_layers = 61,
              .num_attention_heads = 128,
              .num_key_value_heads = std::nullopt,
              .num_experts = 256,
              .num_experts_per_tok = 8,
              .max_position_embeddings = 4096,
              .rms_norm_eps = 1e-6,
              .rope_theta = 1e4};
    case Family::DeepseekV2:
      return {.vocab_size = 32000,
              .hidden_size = 4096,
              .intermediate_size = 11008,
              .moe_intermediate_size = 1407,
              .num_hidden_layers = 32,
              .num_attention_heads = 32,
              .num_key_value_heads = std::nullopt,
              .num_experts = 64,
              .num_experts_per_tok = 0,  // required key
              .max_position_embeddings = 2048,
              .rms_norm_eps = 1e-6,
              .rope_theta = 1e4};
  }
  return {};
}

}  // namespace weft::checkpoint
