#include "weft/model/norm.h"

namespace weft::model {

void norm_forward(const Context& context, NormState& state, const Tensor& x_TD, const Weight& w_D) {
  state.y_TD = context.activation(x_TD.shape());
  state.rstd_T1 = context.activation_fp32({x_TD.dim(0), 1});
  kernels::rms_norm_forward(context.stream,
                            state.y_TD,
                            state.rstd_T1,
                            x_TD,
                            w_D.values,
                            static_cast<float>(context.config.layernorm_epsilon));
}

Tensor norm_dgrad(const Context& context,
                  const NormState& state,
                  const Tensor& x_TD,
                  const Weight& w_D,
                  const Tensor& residual_TD) {
  Tensor dx_TD = context.output(x_TD.shape());
  kernels::rms_norm_dgrad(context.stream,
                          dx_TD,
                          state.dy_TD,
                          x_TD,
                          w_D.values,
                          state.rstd_T1,
                          residual_TD);
  return dx_TD;
}

void norm_wgrad(const Context& context,
                const NormState& state,
                const Tensor& x_TD,
                const Weight& w_D) {
  write_gradient(context, w_D, [&](const Tensor& to_D, kernels::Write how) {
    kernels::rms_norm_wgrad(context.stream, to_D, state.dy_TD, x_TD, state.rstd_T1, how);
  });
}

}  // namespace weft::model
