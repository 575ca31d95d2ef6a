// Floating-point operations of a model.
#pragma once

#include "weft/config/model_config.h"

namespace weft::derive {

// Operations per token and training step, forward and backward: GEMMs and causal attention,
// including multi-token prediction with its own head pass. Excluded: recomputation, embedding
// lookup, router.
double flops_per_token(const config::ModelConfig& model);

// Operations of one layer's forward, per token.
struct LayerFlops {
  double attention = 0;
  double feed_forward = 0;    // the experts that a token visits, or the dense feed-forward
  double shared_experts = 0;  // visited by every token

  double all() const { return attention + feed_forward + shared_experts; }
};
LayerFlops layer_forward_flops(const config::ModelConfig& model, std::int64_t layer);

}  // namespace weft::derive
