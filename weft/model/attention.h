// Attention between its norm and its residual (product_ends.h), in three parts that can be nodes of
// their own: `qkv` (QKV, optional norm of queries and keys, rotation), `core` (causal attention)
// and `proj` (projection). Where the norm is over the heads of several ranks, `qkv` ends with what
// this one has of its sums, and `turn` has norm and rotation, with the sums of all.
//
// Suffixes: T tokens, D hidden, C = Q + 2K columns of QKV, Q query width, K key width, P = Q + K;
// the last three of the rank's heads.
#pragma once

#include "weft/model/context_parallel.h"
#include "weft/model/product_ends.h"

namespace weft::model {

struct AttentionWeights {
  Tensor norm_D, qkv_CD, q_norm, k_norm, proj_DQ;  // q_norm, k_norm: undefined without
};

// What attention keeps between forward, input gradient and weight gradient of one micro-batch. Each
// gradient drops what it is the last to read; after the last weight gradient, nothing is left.
struct AttentionState {
  NormState norm;
  ProductEnds ends;
  Tensor qkv_TC;      // queries and keys rotated in place where they are not normed
  Tensor rotated_TP;  // normed and rotated queries and keys; undefined without
  Tensor q_rstd, k_rstd;
  Tensor sums_2T;  // for the norm of queries, then of keys, between qkv and turn, either way
  Tensor o_TQ, lse_HT;
  // For the projection's weight gradient, which may run before or after core's input gradient.
  Tensor proj_o_TQ, proj_dy_TD;
  Tensor do_TQ;
  Tensor dqkv_TC;
  // Gradient of normed queries and keys, before rotation, or after it where norm and rotation are
  // one operation; undefined without.
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

void attention_proj_wgrad(const Context&, AttentionState&, const AttentionWeights& gradients);
void attention_qkv_wgrad(const Context&, AttentionState&, const AttentionWeights& gradients);
// Of the norms of queries and keys: a part of qkv's that may run before it, so that what the norms
// read need not wait.
void attention_norms_wgrad(const Context&, AttentionState&, const AttentionWeights& gradients);

// For context-parallel ranks (context_parallel.h), which do in the core's place what it does: what
// meets there, which the state gives away with all that nobody else reads; its output; and memory
// for the gradients of `tokens` rows of it.
kernels::AttentionShape attention_shape(const Context&, const AttentionState&);
Attended take_attended(const Context&, AttentionState&);
void put_output(AttentionState&, Tensor o_TQ);
Tensor take_output_gradient(AttentionState&);
Attended attended_gradients(const Context&, AttentionState&, std::int64_t tokens);

// What the part's forward makes again, and that of core as tensors.
void drop_attention_qkv(AttentionState&);
std::vector<Tensor*> made_by_core(AttentionState&);

}  // namespace weft::model
