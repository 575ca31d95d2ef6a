// Norm in front of a sub-layer, with the state for its backward.
#pragma once

#include "weft/model/weight.h"

namespace weft::model {

struct NormState {
  Tensor y_TD;     // output, input of the following products
  Tensor rstd_T1;  // fp32
  Tensor dy_TD;    // gradient of the output
};

void norm_forward(const Context& context, NormState& state, const Tensor& x_TD, const Weight& w_D);
// dx = norm's dgrad + residual: both gradients of the residual stream at this point.
Tensor norm_dgrad(const Context& context,
                  const NormState& state,
                  const Tensor& x_TD,
                  const Weight& w_D,
                  const Tensor& residual_TD);
void norm_wgrad(const Context& context,
                const NormState& state,
                const Tensor& x_TD,
                const Weight& w_D);

}  // namespace weft::model
