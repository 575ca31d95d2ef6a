// Bodies of every piece: one row of bodies per piece and part, in the file of its concept. For the
// program's files only.
#pragma once

#include "weft/train/program/program.h"

namespace weft::train {

// Bodies of a piece or a part; nullptr: it has no such node.
struct Program::Bodies {
  Body forward = nullptr;
  Body input_gradient = nullptr;
  Body weight_gradient = nullptr;
  // Recomputes what `drop` freed after the forward.
  Body recompute = nullptr;
  // True if it makes only a layer's output. A single-node piece that recomputes its gradients'
  // inputs then skips it.
  bool makes_only_layer_output = false;
  void (*drop)(Program&, const Node&) = nullptr;
  // Drops a layer's output, which is the next layer's input.
  void (*drop_next_input)(Program&, const Node&) = nullptr;
  // Dropped tensors that can be offloaded to host memory. take_back: runs after the copy back; it
  // may derive the remaining tensors.
  std::vector<tensor::Tensor*> (*made)(Program&, const Node&) = nullptr;
  Body take_back = nullptr;
  // Output of its forward, for the search for non-finite values.
  tensor::Tensor (*output)(Program&, const Node&) = nullptr;
  // Body of a node without a micro-batch.
  void (*step)(Program&, const Node&, tensor::Stream&) = nullptr;
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

// Selects latent attention or attention: their functions have the same names.
template <typename Do>
void Program::with_attention(const Node& node, const Do& act) {
  model::LayerState& state = layer(node);
  const model::LayerWeights& weights = layer_weights(node);
  if (config_.model.multi_latent_attention) {
    act(state.latent_attention, weights.latent_attention);
  } else {
    act(state.attention, weights.attention);
  }
}

// Step index of a part that runs in steps; 0 for other parts.
inline int step_of(const schedule::Node& node) {
  return node.slice == schedule::kNone ? 0 : node.slice;
}

}  // namespace weft::train
