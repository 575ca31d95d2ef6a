// WHAT IS COMPUTED? The weights by layer, and the state of a micro-batch. No function runs a layer:
// the graph's order calls the pieces one by one.
#pragma once

#include <variant>
#include <vector>

#include "weft/model/attention.h"
#include "weft/model/head.h"
#include "weft/model/latent_attention.h"
#include "weft/model/mlp.h"
#include "weft/model/moe/experts.h"
#include "weft/model/moe/route.h"
#include "weft/model/shared_experts.h"

namespace weft::model {

// Weights of one layer, with their gradients.
struct LayerWeights {
  AttentionWeights attention;
  LatentAttentionWeights latent_attention;  // replaces `attention` with multi_latent_attention
  RouteWeights route;                       // MoE layers
  SharedExpertsWeights shared;              // MoE layers with shared experts
  ExpertsWeights experts;                   // MoE layers
  MlpWeights mlp;                           // dense layers
};

// Weights that a rank holds; the rest is undefined. Layers are indexed as in the whole model.
struct Weights {
  Weight embedding_VD;
  std::vector<LayerWeights> layers;
  HeadWeights head;
};

Weights weights_of(const Parameters& parameters, const config::ModelConfig& config);

// State of the tokens that travel together through a MoE layer: a micro-batch, or a slice of it.
struct SliceState {
  DispatchState dispatch;
  ExpertsState experts;
};

// State of one layer and micro-batch, from its forward to its last weight gradient.
struct LayerState {
  Tensor x_TD;   // the layer's input
  Tensor h_TD;   // after attention
  Tensor dy_TD;  // gradient of the layer's output
  Tensor dh_TD;
  AttentionState attention;
  LatentAttentionState latent_attention;
  ContextState context;  // attention shared by context-parallel ranks
  MlpState mlp;
  RouteState route;
  SharedExpertsState shared;
  Tensor counts_SN;  // int64: this rank's counts of its slices
  Tensor shown_GN;   // counts of all ranks, host-visible, if the host needs them
  std::vector<SliceState> slices;
};

// Outputs of a chunk of layers (one pipeline stage).
struct ChunkState {
  Tensor y_TD;   // output: input of the head or of the next stage
  Tensor dx_TD;  // gradient of the input: for the embedding or the previous stage
};

// State of one micro-batch, as far as this rank computes it.
struct MicroBatchState {
  std::int64_t tokens = 0;
  Tensor ids_T;                    // int32; on the embedding's rank
  Tensor learning_ids_T;           // ids; -1: padding, the embedding learns nothing
  Tensor labels_T;                 // int32; on the head's rank; -1: none
  std::int64_t labelled = 0;       // tokens with a label; on the head's rank
  std::vector<LayerState> layers;  // by layer of the whole model; empty for layers of other ranks
  std::vector<ChunkState> chunks;  // chunks of this rank
  HeadState head;
};

}  // namespace weft::model
