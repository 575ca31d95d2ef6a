// Final norm, LM head and loss: the mean cross entropy over a micro-batch's labelled tokens.
//
// Tensor-parallel ranks share the vocabulary (model/vocabulary.h): a rank norms its own tokens,
// gathers those of all, and has of each the logits of its ids. What they exchange then is two
// numbers a token (sums_T2), from which each knows the loss of all.
#pragma once

#include "weft/model/norm.h"

namespace weft::model {

struct HeadWeights {
  Tensor norm_D, head_VD;
};

struct HeadState {
  NormState norm;                    // of the rank's tokens; y and dy of all where they are
                                     // gathered, and dy until it is scattered
  Tensor logits_TV, sums_T2, lse_T;  // fp32
  Tensor dlogits_TV;  // over the logits in fp32, and with model.cross_entropy_loss_fusion
  Tensor loss_T;      // between logits and loss, where logits come in chunks; fp32
};

void head_norm_forward(const Context&, HeadState&, const HeadWeights&, const Tensor& x_TD);
// `labelled`: tokens of the micro-batch that have a label; at least 1. With context.logits_chunk
// the loss and its gradient follow each chunk of the logits at once, and only the gradient is kept:
// the same numbers in half of the memory.
void head_logits_forward(const Context&,
                         HeadState&,
                         const HeadWeights&,
                         const Tensor& labels_T,
                         std::int64_t labelled);
// The sum of the labelled tokens' losses goes to loss_sum_1 (fp64).
void head_loss_forward(const Context&,
                       HeadState&,
                       const Tensor& labels_T,
                       const Tensor& loss_sum_1);

void head_loss_dgrad(const Context&, HeadState&, const Tensor& labels_T, std::int64_t labelled);
void head_logits_dgrad(const Context&, HeadState&, const HeadWeights&);
Tensor head_norm_dgrad(const Context&, HeadState&, const HeadWeights&, const Tensor& x_TD);

void head_logits_wgrad(const Context&, HeadState&, const HeadWeights& gradients);
void head_norm_wgrad(const Context&, HeadState&, const HeadWeights& gradients, const Tensor& x_TD);

}  // namespace weft::model
