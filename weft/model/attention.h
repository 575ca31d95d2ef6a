// Attention: norm, QKV, optional norm of queries and keys, rotation, causal attention, projection,
// residual.
//
// Suffixes: T tokens, D hidden, C = Q + 2K columns of QKV, Q query width, K key width, P = Q + K.
#pragma once

#include "weft/model/norm.h"

namespace weft::model {

struct AttentionWeights {
  Tensor norm_D, qkv_CD, q_norm, k_norm, proj_DQ;  // q_norm, k_norm: undefined without
};

// What attention keeps between forward, input gradient and weight gradient of one micro-batch.
struct AttentionState {
  NormState norm;
  Tensor qkv_TC;      // queries and keys rotated in place where they are not normed
  Tensor rotated_TP;  // normed and rotated queries and keys; undefined without
  Tensor q_rstd, k_rstd;
  Tensor o_TQ, lse_HT;
  Tensor dqkv_TC;
  Tensor dnormed_TP;  // gradient of normed queries and keys, before rotation; undefined without
};

// h = x + attention(norm(x)); returns h.
Tensor attention_forward(const Context&,
                         AttentionState&,
                         const AttentionWeights&,
                         const Tensor& x_TD);
// Returns dx for dh.
Tensor attention_dgrad(const Context&,
                       AttentionState&,
                       const AttentionWeights&,
                       const Tensor& x_TD,
                       const Tensor& dh_TD);
// Adds to the gradients and drops the state.
void attention_wgrad(const Context&,
                     AttentionState&,
                     const AttentionWeights& gradients,
                     const Tensor& x_TD,
                     const Tensor& dh_TD);

}  // namespace weft::model
