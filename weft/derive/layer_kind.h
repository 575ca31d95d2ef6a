// Kind of each layer. Layers count from 0.
#pragma once

#include <cstdint>

#include "weft/config/model_config.h"

namespace weft::derive {

enum class AttentionKind {
  Grouped,   // grouped-query attention (GQA)
  Latent,    // compressed queries, keys and values (MLA)
  DeltaNet,  // gated delta net: linear attention
};

AttentionKind attention_of(const config::ModelConfig& model, std::int64_t layer);

// True if queries and keys are normed over heads of several tensor-parallel ranks.
bool norms_across_ranks(const config::ModelConfig& model);

// True if a query of the layer sees only model.window_size tokens.
bool is_windowed(const config::ModelConfig& model, std::int64_t layer);

// Layers of multi-token prediction, each of the last layer's kind.
std::int64_t mtp_layers(const config::ModelConfig& model);

// Total width of the shared experts; 0: none.
std::int64_t shared_expert_width(const config::ModelConfig& model);

}  // namespace weft::derive
