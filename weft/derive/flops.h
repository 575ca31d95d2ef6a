// How much a model computes.
#pragma once

#include "weft/config/model_config.h"

namespace weft::derive {

// Floating-point operations of one token in one training step, forward and backward: matrix
// products and causal attention, multi-token prediction with its own run of the head; no
// recomputation, embedding lookup or router.
double flops_per_token(const config::ModelConfig& model);

// Of them, those of the forward of one layer.
struct LayerFlops {
  double attention = 0;
  double feed_forward = 0;    // the experts that a token takes, or the dense one
  double shared_experts = 0;  // which every token takes

  double all() const { return attention + feed_forward + shared_experts; }
};
LayerFlops layer_forward_flops(const config::ModelConfig& model, std::int64_t layer);

}  // namespace weft::derive
