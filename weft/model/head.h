// Final norm, LM head and loss: mean cross entropy over a micro-batch's labelled tokens.
//
// Tensor-parallel ranks share the vocabulary (model/vocabulary.h). A rank norms its own tokens,
// gathers all tokens, and computes the logits of its ids. Ranks then exchange two numbers per token
// (sums_T2), from which each computes every token's loss.
#pragma once

#include "weft/model/norm.h"
#include "weft/model/product.h"

namespace weft::model {

struct HeadWeights {
  Weight norm_D;
  Product head_VD;
};

struct HeadState {
  // rank's tokens; while gathered, y and dy of all tokens (dy until it is scattered)
  NormState norm;
  Tensor logits_TV, sums_T2, lse_T;  // fp32
  Tensor dlogits_TV;  // in the logits' memory if fp32 or model.cross_entropy_loss_fusion
  Tensor loss_T;      // fp32; between logits and loss if logits are chunked
};

void head_norm_forward(const Context&, HeadState&, const HeadWeights&, const Tensor& x_TD);
// `labelled`: labelled tokens of the micro-batch, at least 1. With context.logits_chunk, the loss
// and its gradient follow each chunk of logits, and only the gradient is kept: equal numbers in
// half the memory.
void head_logits_forward(const Context&,
                         HeadState&,
                         const HeadWeights&,
                         const Tensor& labels_T,
                         std::int64_t labelled);
// Writes the sum of the labelled tokens' losses to loss_sum_1 (fp64).
void head_loss_forward(const Context&,
                       HeadState&,
                       const Tensor& labels_T,
                       const Tensor& loss_sum_1);

void head_loss_dgrad(const Context&,
                     HeadState&,
                     const HeadWeights&,
                     const Tensor& labels_T,
                     std::int64_t labelled);
void head_logits_dgrad(const Context&, HeadState&, const HeadWeights&);
Tensor head_norm_dgrad(const Context&, HeadState&, const HeadWeights&, const Tensor& x_TD);

void head_logits_wgrad(const Context&, HeadState&, const HeadWeights&);
void head_norm_wgrad(const Context&, HeadState&, const HeadWeights&, const Tensor& x_TD);

}  // namespace weft::model
