// Part of the config that the model sees, with derived sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/enums.h"

namespace weft::config {

// Row budget of a rank in a step (model.moe_expert_rank_capacity_factor). A step that exceeds its
// budget runs again with Lifted.
enum class RowBudget { AsConfigured, Lifted };

// Experts as a dispatcher sees them. A token goes to every rank that shares its expert, so each
// shard of an expert counts as an expert.
struct ExpertGrid {
  std::int64_t experts = 0;    // expert shards, in order of the ranks that hold them
  std::int64_t per_token = 0;  // expert shards that a token goes to
  std::int64_t ranks = 1;      // ranks that hold them, equally many each
  std::int64_t shards = 1;     // shards per expert, on neighbouring ranks

  std::int64_t local() const { return experts / ranks; }
};

struct ModelConfig {
#define WEFT_FIELD(type, name, initial, meaning, unit, support) type name = initial;
#include "weft/config/fields/model.def"
#include "weft/config/fields/model_memory.def"
#include "weft/config/fields/model_moe.def"
#include "weft/config/fields/model_parallel.def"
#include "weft/config/fields/model_precision.def"
#undef WEFT_FIELD

  std::int64_t head_dim() const { return kv_channels.value_or(hidden_size / num_attention_heads); }
  // Vocabulary padded to a multiple of model.make_vocab_size_divisible_by times tp.
  std::int64_t padded_vocab_size() const;
  std::int64_t query_groups() const { return num_query_groups.value_or(num_attention_heads); }
  std::int64_t query_width() const { return num_attention_heads * head_dim(); }
  std::int64_t key_width() const { return query_groups() * head_dim(); }
  // Heads and widths of one tensor-parallel rank. With fewer key/value heads than ranks, ranks
  // share heads.
  std::int64_t local_heads() const { return num_attention_heads / tensor_model_parallel_size; }
  std::int64_t local_query_groups() const {
    return std::max<std::int64_t>(1, query_groups() / tensor_model_parallel_size);
  }
  std::int64_t local_query_width() const { return local_heads() * head_dim(); }
  std::int64_t local_key_width() const { return local_query_groups() * head_dim(); }
  // Channels of a query or key head in latent attention.
  std::int64_t latent_head_dim() const { return qk_head_dim + qk_pos_emb_head_dim; }
  double latent_epsilon() const { return latent_layernorm_epsilon.value_or(layernorm_epsilon); }
  // Channels of a head with rotary positions.
  std::int64_t rotary_width() const {
    return multi_latent_attention ? qk_pos_emb_head_dim : head_dim();
  }
  // Experts of a MoE layer; 0: every layer is dense.
  std::int64_t experts() const { return std::max<std::int64_t>(0, num_moe_experts.value_or(0)); }
  std::int64_t local_experts() const { return experts() / expert_model_parallel_size; }
  // Ranks that share an expert (expert tensor parallelism).
  std::int64_t expert_shards() const {
    const std::int64_t as_dense = expert_model_parallel_size > 1 ? 1 : tensor_model_parallel_size;
    return expert_tensor_parallel_size.value_or(as_dense);
  }
  ExpertGrid expert_grid() const;
  // True if dispatch sends tokens to other ranks.
  bool tokens_travel() const {
    return experts() > 0 && (expert_model_parallel_size > 1 || expert_shards() > 1);
  }
  // Matrices of a feed-forward, and how many of them feed the activation.
  std::int64_t feed_forward_matrices() const { return gated_linear_unit ? 3 : 2; }
  std::int64_t first_products() const { return gated_linear_unit ? 2 : 1; }
  // Weights of a norm per channel.
  std::int64_t norm_weights() const { return normalization == Normalization::LayerNorm ? 2 : 1; }
  // Rows of the learned position table; 0: no table.
  std::int64_t learned_positions() const {
    const bool learned = position_embedding_type == PositionEmbedding::LearnedAbsolute;
    return learned ? max_position_embeddings.value_or(seq_length) : 0;
  }
  std::int64_t dense_width() const { return ffn_hidden_size.value_or(4 * hidden_size); }
  // Maximum rows of an expert from one rank's `tokens`; requires moe_expert_capacity_factor.
  std::int64_t expert_capacity(std::int64_t tokens) const;
  // Maximum rows on a rank if every rank has `tokens`; requires moe_expert_rank_capacity_factor.
  std::int64_t row_budget(std::int64_t tokens) const;
  std::int64_t expert_width() const { return moe_ffn_hidden_size.value_or(dense_width()); }
  std::int64_t expert_shard_width() const { return expert_width() / expert_shards(); }
  // Coefficient of an auxiliary loss; 0: not requested.
  double aux_loss_coeff(LoadBalancing kind) const;
  bool is_moe_layer(std::int64_t layer) const;
  std::int64_t moe_layers() const;
};

// True if the flex dispatcher moves the tokens, with this backend.
bool dispatches_by(const ModelConfig& model, FlexBackend backend);

}  // namespace weft::config
