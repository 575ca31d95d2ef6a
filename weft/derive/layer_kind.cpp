#include "weft/derive/layer_kind.h"

#include <algorithm>

namespace weft::derive {

using namespace config;

AttentionKind attention_of(const ModelConfig& model, std::int64_t layer) {
  const bool keeps_full =
      !model.linear_attention_freq || (layer + 1) % *model.linear_attention_freq == 0;
  if (!keeps_full) return AttentionKind::DeltaNet;
  return model.multi_latent_attention ? AttentionKind::Latent : AttentionKind::Grouped;
}

bool norms_across_ranks(const ModelConfig& model) {
  return model.tensor_model_parallel_size > 1 && !model.multi_latent_attention &&
         model.qk_layernorm == QkNorm::Projection;
}

bool is_windowed(const ModelConfig& model, std::int64_t layer) {
  if (!model.window_size) return false;
  return model.window_attn_skip_freq == 1 || (layer + 1) % model.window_attn_skip_freq != 0;
}

std::int64_t mtp_layers(const ModelConfig& model) {
  return std::max<std::int64_t>(0, model.mtp_num_layers.value_or(0));
}

std::int64_t shared_expert_width(const ModelConfig& model) {
  return std::max<std::int64_t>(0, model.moe_shared_expert_intermediate_size.value_or(0));
}

}  // namespace weft::derive
