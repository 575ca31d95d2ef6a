// Attention between its norm and its residual (product_ends.h), in three parts that can be separate
// nodes: `qkv` (QKV, optional norm of queries and keys, rotation), `core` (causal attention) and
// `proj` (projection). If the norm spans the heads of several ranks, `qkv` ends with this rank's
// part of the norm's sums; `turn` then does norm and rotation with the full sums.
//
// Suffixes: T tokens, D hidden, C = Q + 2K columns of QKV, Q query width, K key width, P = Q + K;
// Q, K and P are those of the rank's heads.
#pragma once

#include "weft/model/context_parallel.h"
#include "weft/model/product_ends.h"

namespace weft::model {

struct AttentionWeights {
  Weight norm_D, q_norm, k_norm;  // q_norm, k_norm: undefined if not normed
  Product qkv_CD, proj_DQ;
};

// State of attention between forward, input gradient and weight gradient of one micro-batch. A
// gradient drops tensors that it reads last; after the last weight gradient, the state is empty.
struct AttentionState {
  NormState norm;
  ProductEnds ends;
  Tensor qkv_TC;      // queries and keys, if not normed, are rotated in place
  Tensor rotated_TP;  // normed and rotated queries and keys; undefined if not normed
  Tensor q_rstd, k_rstd;
  // sums of the query norm, then of the key norm, between qkv and turn, forward or backward
  Tensor sums_2T;
  Tensor o_TQ, lse_HT;
  // For the projection's weight gradient, which may run before or after core's input gradient.
  Tensor proj_o_TQ, proj_dy_TD;
  Tensor do_TQ;
  Tensor dqkv_TC;
  // Gradient of normed queries and keys: before rotation, or after it if norm and rotation are
  // fused. Undefined if not normed.
  Tensor dnormed_TP;
};

void attention_qkv_forward(const Context&, AttentionState&, const AttentionWeights&);
void attention_turn_forward(const Context&, AttentionState&, const AttentionWeights&);
void attention_core_forward(const Context&, AttentionState&);
void attention_proj_forward(const Context&, AttentionState&, const AttentionWeights&);

void attention_proj_dgrad(const Context&, AttentionState&, const AttentionWeights&);
void attention_core_dgrad(const Context&, AttentionState&);
void attention_turn_dgrad(const Context&, AttentionState&, const AttentionWeights&);
void attention_qkv_dgrad(const Context&, AttentionState&, const AttentionWeights&);

void attention_proj_wgrad(const Context&, AttentionState&, const AttentionWeights&);
void attention_qkv_wgrad(const Context&, AttentionState&, const AttentionWeights&);
// Weight gradient of the query and key norms: a part of qkv's that may run first, to free the
// norms' inputs early.
void attention_norms_wgrad(const Context&, AttentionState&, const AttentionWeights&);

// Interface to context_parallel.h, which replaces the core: the inputs of attention, which the
// state gives away with everything else that is not read again; its output; and memory for the
// gradients of `tokens` rows.
kernels::AttentionShape attention_shape(const Context&, const AttentionState&);
Attended take_attended(const Context&, AttentionState&);
void put_output(AttentionState&, Tensor o_TQ);
Tensor take_output_gradient(AttentionState&);
Attended attended_gradients(const Context&, AttentionState&, std::int64_t tokens);

// Drops what the recomputed part makes again; made_by_core lists core's tensors.
void drop_attention_qkv(AttentionState&);
std::vector<Tensor*> made_by_core(AttentionState&);

}  // namespace weft::model
