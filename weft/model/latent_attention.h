// Multi-head latent attention, in parts like attention's: `qkv` (one projection down to compressed
// queries, compressed keys and values, and the position part of the keys), `expand` (norms of the
// compressed columns, projections up, rotation), `core` (causal attention) and `proj` (projection).
// Without query compression, the projection down makes whole queries. Functions are named as
// attention's are, for other states and weights.
//
// Suffixes: T tokens, D hidden, L compressed queries, R compressed keys and values, P position
// channels, Q queries of all heads, C = (L or Q) + R + P columns of the projection down, U expanded
// keys and values, K keys of all heads, V values of all heads. Heads are the rank's. Compressed
// columns and the position part are equal on all tensor-parallel ranks.
#pragma once

#include "weft/model/context_parallel.h"
#include "weft/model/product_ends.h"

namespace weft::model {

struct LatentAttentionWeights {
  Weight norm_D;
  Product down_CD;
  Weight q_norm_L;  // with q_up_QL: undefined if queries are not compressed
  Product q_up_QL;
  Weight kv_norm_R;
  Product kv_up_UR, proj_DV;
};

// State between forward, input gradient and weight gradient of one micro-batch. A gradient drops
// tensors that it reads last; after the last weight gradient, the state is empty.
struct LatentAttentionState {
  NormState norm;
  ProductEnds ends;
  Tensor down_TC;  // position part of the keys, and whole queries, rotated in place
  // norms of the compressed columns; q_norm: undefined if queries are not compressed
  NormState q_norm, kv_norm;
  Tensor q_TQ;  // rotated; columns of down_TC if queries are not compressed
  Tensor k_TK, v_TV;
  Tensor o_TV, lse_HT;
  // For the projection's weight gradient, which may run before or after core's input gradient.
  Tensor proj_o_TV, proj_dy_TD;
  Tensor do_TV, dk_TK, dv_TV;
  Tensor ddown_TC, dq_TQ, dkv_TU;
};

void attention_qkv_forward(const Context&, LatentAttentionState&, const LatentAttentionWeights&);
void attention_expand_forward(const Context&, LatentAttentionState&, const LatentAttentionWeights&);
void attention_core_forward(const Context&, LatentAttentionState&);
void attention_proj_forward(const Context&, LatentAttentionState&, const LatentAttentionWeights&);

void attention_proj_dgrad(const Context&, LatentAttentionState&, const LatentAttentionWeights&);
void attention_core_dgrad(const Context&, LatentAttentionState&);
void attention_expand_dgrad(const Context&, LatentAttentionState&, const LatentAttentionWeights&);
void attention_qkv_dgrad(const Context&, LatentAttentionState&, const LatentAttentionWeights&);

void attention_proj_wgrad(const Context&, LatentAttentionState&, const LatentAttentionWeights&);
void attention_expand_wgrad(const Context&, LatentAttentionState&, const LatentAttentionWeights&);
void attention_qkv_wgrad(const Context&, LatentAttentionState&, const LatentAttentionWeights&);

// Interface to context_parallel.h, as attention's.
kernels::AttentionShape attention_shape(const Context&, const LatentAttentionState&);
Attended take_attended(const Context&, LatentAttentionState&);
void put_output(LatentAttentionState&, Tensor o_TV);
Tensor take_output_gradient(LatentAttentionState&);
Attended attended_gradients(const Context&, LatentAttentionState&, std::int64_t tokens);

// Drops what the recomputed part makes again.
void drop_attention_qkv(LatentAttentionState&);
void drop_attention_expand(LatentAttentionState&);
// Tensors of the part, some undefined.
std::vector<Tensor*> made_by_expand(LatentAttentionState&);
std::vector<Tensor*> made_by_core(LatentAttentionState&);

}  // namespace weft::model
