// WHAT IS COMPUTED? The weights by layer, and the state a micro-batch keeps. There is no function
// that runs a layer: pieces are called one by one, in the order a graph gives.
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

// One layer's weights, or one layer's gradients: the same shape of thing.
struct LayerWeights {
  AttentionWeights attention;
  LatentAttentionWeights latent_attention;  // in its place, with multi_latent_attention
  RouteWeights route;                       // MoE layers
  SharedExpertsWeights shared;              // MoE layers that have them
  ExpertsWeights experts;                   // MoE layers
  MlpWeights mlp;                           // dense layers
};

// Of what a rank holds; the rest is undefined. Layers are those of the whole model.
struct Weights {
  Tensor embedding_VD;
  std::vector<LayerWeights> layers;
  HeadWeights head;
};

Weights weights_of(const Parameters& parameters, const config::ModelConfig& config);
Weights gradients_of(const Parameters& parameters, const config::ModelConfig& config);

// What travels together through one MoE layer: a micro-batch's tokens, or a slice of them.
struct SliceState {
  DispatchState dispatch;
  ExpertsState experts;
};

// What one layer keeps of one micro-batch, from its forward to its last weight gradient.
struct LayerState {
  Tensor x_TD;   // the layer's input
  Tensor h_TD;   // after attention
  Tensor dy_TD;  // gradient of the layer's output
  Tensor dh_TD;
  AttentionState attention;
  LatentAttentionState latent_attention;
  ContextState context;  // of attention that context-parallel ranks share
  MlpState mlp;
  RouteState route;
  SharedExpertsState shared;
  Tensor counts_SN;  // int64: what this rank tells the others of its slices
  Tensor shown_GN;   // the same of every rank, host-visible, where the host is to learn it
  std::vector<SliceState> slices;
};

// What a chunk of layers (one pipeline stage) has ready for others.
struct ChunkState {
  Tensor y_TD;   // its output: the head's input, or on its way to the next stage
  Tensor dx_TD;  // the gradient of its input: the embedding's, or for the stage before
};

// One micro-batch on its way through the model, as far as this rank has to do with it.
struct MicroBatchState {
  std::int64_t tokens = 0;
  Tensor ids_T;                    // int32, where the embedding is
  Tensor learning_ids_T;           // ids, -1 where the embedding learns nothing (padding)
  Tensor labels_T;                 // int32, where the head is; -1: none
  std::int64_t labelled = 0;       // tokens with a label, where the head is
  std::vector<LayerState> layers;  // of the whole model; empty where they are not this rank's
  std::vector<ChunkState> chunks;  // of this rank
  HeadState head;
};

}  // namespace weft::model
