// What every piece does: for each piece and part one row of bodies, in the file of its concept.
// Seen by the files of the program alone.
#pragma once

#include "weft/train/program.h"

namespace weft::train {

// The bodies of a piece, or of a part; none where it has no such node.
struct Program::Bodies {
  Body forward = nullptr;
  Body input_gradient = nullptr;
  Body weight_gradient = nullptr;
  // Makes again what `drop` let go of after the forward.
  Body recompute = nullptr;
  // Nothing but a layer's output comes of it: where the piece is one node, which remakes what its
  // gradients read, it does not run again.
  bool leads_out_alone = false;
  void (*drop)(Program&, const Node&) = nullptr;
  // The same of a layer's output, which the next layer has as its input.
  void (*let_go)(Program&, const Node&) = nullptr;
  // What these let go of, where it can wait in the host's memory; and what is to be done when it is
  // back, behind its copy: the rest of it may be made of what waited.
  std::vector<tensor::Tensor*> (*made)(Program&, const Node&) = nullptr;
  Body take_back = nullptr;
  // The tensor that its forward computed; for looking for what is not finite.
  tensor::Tensor (*output)(Program&, const Node&) = nullptr;
  void (*step)(Program&, const Node&, tensor::Stream&) = nullptr;  // of no micro-batch
};

struct Program::Pieces {
  // program_ends.cpp
  static Bodies embed(schedule::Part part);
  static Bodies embed_lookup();
  static Bodies embed_scatter();
  static Bodies head(schedule::Part part);
  static Bodies head_norm();
  static Bodies head_gather();
  static Bodies head_logits();
  static Bodies head_sums();
  static Bodies head_loss();
  // program_layers.cpp
  static Bodies attention(schedule::Part part);
  static Bodies attention_qkv();
  static Bodies attention_expand();
  static Bodies attention_squares();
  static Bodies attention_turn();
  static Bodies attention_core();
  static Bodies attention_proj();
  static Bodies mlp(schedule::Part part);
  static Bodies mlp_fc1();
  static Bodies mlp_act();
  static Bodies mlp_fc2();
  // program_context.cpp
  static Bodies context_heads();
  static Bodies context_arrange();
  static Bodies context_ring();
  static Bodies context_keys();
  static Bodies context_tokens();
  // program_sub_layers.cpp
  static Bodies around_products(schedule::Part part);
  static Bodies sub_layer_norm();
  static Bodies sub_layer_add();
  static Bodies gather_tokens();
  static Bodies scatter_tokens();
  // program_moe_pieces.cpp
  static Bodies route(schedule::Part part);
  static Bodies route_norm();
  static Bodies route_choose();
  static Bodies counts();
  static Bodies balance();
  static Bodies tally();
  static Bodies sizes();
  static Bodies permute();
  static Bodies dispatch();
  static Bodies experts(schedule::Part part);
  static Bodies experts_arrange();
  static Bodies experts_fc1();
  static Bodies experts_act();
  static Bodies experts_fc2();
  static Bodies combine();
  static Bodies merge();
  static Bodies shared(schedule::Part part);
  static Bodies shared_fc1();
  static Bodies shared_fc2();
  static Bodies shared_gate();
  // program_chunks.cpp
  static Bodies exchange();
  // program_step_end.cpp
  static Bodies narrow();
  static Bodies reduce();
  static Bodies widen();
  static Bodies gather();
  static Bodies tie();
  static Bodies norm();
  static Bodies totals();
  static Bodies clip();
  static Bodies optimizer();
  static Bodies snapshot();
  // program_offloaded.cpp
  static Bodies download();
  static Bodies update();
  static Bodies upload();
};

// Latent attention stands in the place of the other: its functions have the same names.
template <typename Do>
void Program::with_attention(const Node& node, const Do& act) {
  model::LayerState& state = layer(node);
  const model::LayerWeights& weights = layer_weights(node);
  const model::LayerWeights& gradients = layer_gradients(node);
  if (config_.model.multi_latent_attention) {
    act(state.latent_attention, weights.latent_attention, gradients.latent_attention);
  } else {
    act(state.attention, weights.attention, gradients.attention);
  }
}

// Of a part that runs in steps; else the only one.
inline int step_of(const schedule::Node& node) {
  return node.slice == schedule::kNone ? 0 : node.slice;
}

}  // namespace weft::train
