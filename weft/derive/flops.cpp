#include "weft/derive/flops.h"

#include "weft/base/casts.h"
#include "weft/derive/blocks.h"
#include "weft/derive/layer_kind.h"

namespace weft::derive {

using base::number;
using config::ModelConfig;

namespace {

// A multiplication is two operations, and the backward costs twice the forward.
constexpr double kForwardOperations = 2, kOperations = 3 * kForwardOperations;

double forward(const ModelConfig& model, const block::Block& block) {
  return kForwardOperations * block::multiplications(block, model.moe_router_topk);
}

}  // namespace

LayerFlops layer_forward_flops(const ModelConfig& model, std::int64_t layer) {
  LayerFlops flops;
  for (const block::Block& block : layer_blocks(model, layer)) {
    double& sum = block.piece == block::Piece::Attention ? flops.attention
                  : block.piece == block::Piece::Shared  ? flops.shared_experts
                                                         : flops.feed_forward;
    sum += forward(model, block);
  }
  return flops;
}

double flops_per_token(const ModelConfig& model) {
  double layers = 0;
  for (const LayerKindCount& kind : layer_kinds(model, 0, model.num_layers)) {
    layers += number(kind.count) * layer_forward_flops(model, kind.layer).all();
  }
  const double ahead = layer_forward_flops(model, model.num_layers - 1).all() +
                       forward(model, token_ahead_block(model));
  const double head = forward(model, head_block(model));
  const double depth = number(mtp_layers(model));
  return kOperations / kForwardOperations * (layers + depth * ahead + head * (depth + 1));
}

}  // namespace weft::derive
