// Multi-head latent attention: norm, one projection down to compressed queries, compressed keys and
// values and the position part of the keys; norms of what is compressed; projections up; rotation,
// causal attention, projection, residual. Queries need not be compressed: then the projection down
// makes them whole.
//
// Suffixes: T tokens, D hidden, L compressed queries, R compressed keys and values, P position
// channels, Q queries of all heads, C = (L or Q) + R + P columns of the projection down, U expanded
// keys and values, K keys of all heads, V values of all heads.
#pragma once

#include "weft/model/norm.h"

namespace weft::model {

struct LatentAttentionWeights {
  Tensor norm_D, down_CD;
  Tensor q_norm_L, q_up_QL;  // undefined where queries are not compressed
  Tensor kv_norm_R, kv_up_UR, proj_DV;
};

// What it keeps between forward, input gradient and weight gradient of one micro-batch.
struct LatentAttentionState {
  NormState norm;
  Tensor down_TC;             // position part of the keys rotated in place; so are whole queries
  NormState q_norm, kv_norm;  // of the compressed columns; q_norm undefined without
  Tensor q_TQ;                // rotated; columns of down_TC where queries are not compressed
  Tensor k_TK, v_TV;
  Tensor o_TV, lse_HT;
  Tensor ddown_TC, dq_TQ, dkv_TU;
};

// h = x + attention(norm(x)); returns h.
Tensor latent_attention_forward(const Context&,
                                LatentAttentionState&,
                                const LatentAttentionWeights&,
                                const Tensor& x_TD);
// Returns dx for dh.
Tensor latent_attention_dgrad(const Context&,
                              LatentAttentionState&,
                              const LatentAttentionWeights&,
                              const Tensor& x_TD,
                              const Tensor& dh_TD);
// Adds to the gradients and drops the state.
void latent_attention_wgrad(const Context&,
                            LatentAttentionState&,
                            const LatentAttentionWeights& gradients,
                            const Tensor& x_TD,
                            const Tensor& dh_TD);

}  // namespace weft::model
