// What is computed: the part of the config the model sees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/enums.h"

namespace weft::config {

// Whether a step keeps to the row budget of a rank (model.moe_expert_rank_capacity_factor). A step
// that exceeded its budget runs again with the budget lifted.
enum class RowBudget { AsConfigured, Lifted };

// The experts as a dispatcher sees them: it brings every token that chose an expert to each of the
// ranks that share it, so that an expert counts once for each of its shards.
struct ExpertGrid {
  std::int64_t experts = 0;    // shards of experts, in order of the ranks that hold them
  std::int64_t per_token = 0;  // that a token is brought to
  std::int64_t ranks = 1;      // that hold them, as many each
  std::int64_t shards = 1;     // of an expert, on neighbouring ranks

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
  // With the padding that makes it divisible by model.make_vocab_size_divisible_by times tp.
  std::int64_t padded_vocab_size() const;
  std::int64_t query_groups() const { return num_query_groups.value_or(num_attention_heads); }
  std::int64_t query_width() const { return num_attention_heads * head_dim(); }
  std::int64_t key_width() const { return query_groups() * head_dim(); }
  // Of one tensor-parallel rank. Key and value heads are on several ranks where they are fewer.
  std::int64_t local_heads() const { return num_attention_heads / tensor_model_parallel_size; }
  std::int64_t local_query_groups() const {
    return std::max<std::int64_t>(1, query_groups() / tensor_model_parallel_size);
  }
  std::int64_t local_query_width() const { return local_heads() * head_dim(); }
  std::int64_t local_key_width() const { return local_query_groups() * head_dim(); }
  // Channels of a query or key head of latent attention.
  std::int64_t latent_head_dim() const { return qk_head_dim + qk_pos_emb_head_dim; }
  double latent_epsilon() const { return latent_layernorm_epsilon.value_or(layernorm_epsilon); }
  // Channels of a head that turn by its position.
  std::int64_t rotary_width() const {
    return multi_latent_attention ? qk_pos_emb_head_dim : head_dim();
  }
  // Experts of a MoE layer; 0: every layer is dense.
  std::int64_t experts() const { return std::max<std::int64_t>(0, num_moe_experts.value_or(0)); }
  std::int64_t local_experts() const { return experts() / expert_model_parallel_size; }
  // Ranks that share an expert.
  std::int64_t expert_shards() const {
    const std::int64_t as_dense = expert_model_parallel_size > 1 ? 1 : tensor_model_parallel_size;
    return expert_tensor_parallel_size.value_or(as_dense);
  }
  ExpertGrid expert_grid() const;
  // Whether experts are on other ranks too.
  bool tokens_travel() const {
    return experts() > 0 && (expert_model_parallel_size > 1 || expert_shards() > 1);
  }
  // Matrices of a feed-forward, and how many of them make what its activation takes.
  std::int64_t feed_forward_matrices() const { return gated_linear_unit ? 3 : 2; }
  std::int64_t first_products() const { return gated_linear_unit ? 2 : 1; }
  // Numbers of a norm for each channel.
  std::int64_t norm_weights() const { return normalization == Normalization::LayerNorm ? 2 : 1; }
  // Rows of the table of learned positions; 0: there is none.
  std::int64_t learned_positions() const {
    const bool learned = position_embedding_type == PositionEmbedding::LearnedAbsolute;
    return learned ? max_position_embeddings.value_or(seq_length) : 0;
  }
  std::int64_t dense_width() const { return ffn_hidden_size.value_or(4 * hidden_size); }
  // Rows an expert takes of one rank's `tokens` (moe_expert_capacity_factor, which is set).
  std::int64_t expert_capacity(std::int64_t tokens) const;
  // Rows a rank has room for where every rank brings `tokens` (moe_expert_rank_capacity_factor,
  // which is set).
  std::int64_t row_budget(std::int64_t tokens) const;
  std::int64_t expert_width() const { return moe_ffn_hidden_size.value_or(dense_width()); }
  std::int64_t expert_shard_width() const { return expert_width() / expert_shards(); }
  // Coefficient of a kind of auxiliary loss; 0 where it is not among those asked for.
  double aux_loss_coeff(LoadBalancing kind) const;
  bool is_moe_layer(std::int64_t layer) const;
  std::int64_t moe_layers() const;
};

// Whether the flex dispatcher moves the tokens, through this backend.
bool dispatches_by(const ModelConfig& model, FlexBackend backend);

}  // namespace weft::config
