// What kind of layer is where. Layers count from 0.
#pragma once

#include <cstdint>

#include "weft/config/model_config.h"

namespace weft::derive {

enum class AttentionKind {
  Grouped,   // heads with grouped keys and values (GQA)
  Latent,    // compressed queries, keys and values (MLA)
  DeltaNet,  // gated delta net: linear attention
};

AttentionKind attention_of(const config::ModelConfig& model, std::int64_t layer);

// Whether queries and keys are normed over the heads of several tensor-parallel ranks.
bool norms_across_ranks(const config::ModelConfig& model);

// Whether a query of the layer sees only model.window_size tokens.
bool is_windowed(const config::ModelConfig& model, std::int64_t layer);

// Layers of multi-token prediction. Each copies the last layer's kind.
std::int64_t mtp_layers(const config::ModelConfig& model);

// Width of the shared experts together; 0: there are none.
std::int64_t shared_expert_width(const config::ModelConfig& model);

}  // namespace weft::derive
