// Map from Hugging Face tensors to parameter elements. Each tensor is a contiguous range of one
// parameter, so the table is the whole conversion.
//
// Parameters, with global shapes (V vocabulary, H hidden, Q query width, K key width, E experts,
// F feed-forward width; D head width or, for a norm over the projection, Q and K):
//   embedding.weight (V, H)
//   layers.i.attention.norm.weight (H)       layers.i.attention.qkv.weight (Q + 2K, H): q, k, v
//   layers.i.attention.q_norm.weight (D)     layers.i.attention.k_norm.weight (D)
//   layers.i.attention.proj.weight (H, Q)
//   latent attention, in place of qkv (L compressed queries, R compressed keys and values, P
//   channels with a position; N without, D of a value, of each of A heads; q whole if not
//   compressed):
//          layers.i.attention.down.weight (L + R + P, H): q, kv
//          layers.i.attention.q_norm.weight (L)    layers.i.attention.q_up.weight (A(N + P), L)
//          layers.i.attention.kv_norm.weight (R)   layers.i.attention.kv_up.weight (A(N + D), R)
//          layers.i.attention.proj.weight (H, AD)
//   MoE:   layers.i.route.norm.weight (H)    layers.i.route.router.weight (E, H)
//          layers.i.route.bias (E), not trained
//          layers.i.shared.fc1.weight (2S, H): gate, up        layers.i.shared.fc2.weight (H, S)
//          layers.i.experts.fc1.weight (E, 2F, H): gate, up    layers.i.experts.fc2.weight (E, H,
//          F)
//   dense: layers.i.mlp.norm.weight (H)
//          layers.i.mlp.fc1.weight (2F, H): gate, up           layers.i.mlp.fc2.weight (H, F)
//   head.norm.weight (H)                     head.weight (V, H), where untied
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/checkpoint/huggingface/huggingface_config.h"
#include "weft/checkpoint/tensors/file_tensor.h"

namespace weft::checkpoint {

struct Parameter {
  std::string name;
  Shape shape;

  std::int64_t elements() const;
};

// Every parameter of the model, in order of use.
std::vector<Parameter> parameters(const config::ModelConfig& model);

// Separate: a tensor for each projection of each expert, in the family's spelling. Stacked: the
// experts of a layer in two tensors, gate and up together, spelled alike for all families.
enum class ExpertNames { Separate, Stacked };

struct HuggingFaceTensor {
  std::string name;
  Shape shape;
  std::string parameter;
  std::int64_t begin;   // first element in the parameter
  bool trained = true;  // else without gradient, and fp32 in every file

  std::int64_t elements() const;
};

// The tensors that together are the model, each element once.
std::vector<HuggingFaceTensor> huggingface_tensors(const config::ModelConfig& model,
                                                   Family family,
                                                   ExpertNames experts);

}  // namespace weft::checkpoint
