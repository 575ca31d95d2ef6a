// Final norm, LM head and loss: the mean cross entropy over a micro-batch's labelled tokens.
#pragma once

#include "weft/model/norm.h"

namespace weft::model {

struct HeadWeights {
  Tensor norm_D, head_VD;
};

struct HeadState {
  NormState norm;
  Tensor logits_TV, lse_T;  // fp32
  Tensor dlogits_TV;        // over the logits in fp32, and with model.cross_entropy_loss_fusion
};

// The sum of the labelled tokens' losses goes to loss_sum_1 (fp64).
void head_forward(const Context&,
                  HeadState&,
                  const HeadWeights&,
                  const Tensor& x_TD,
                  const Tensor& labels_T,
                  const Tensor& loss_sum_1);
// `labelled`: tokens of the micro-batch that have a label; at least 1.
Tensor head_dgrad(const Context&,
                  HeadState&,
                  const HeadWeights&,
                  const Tensor& x_TD,
                  const Tensor& labels_T,
                  std::int64_t labelled);
void head_wgrad(const Context&, HeadState&, const HeadWeights& gradients, const Tensor& x_TD);

}  // namespace weft::model
