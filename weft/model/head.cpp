#include "weft/model/head.h"

#include "weft/model/weight_gradient.h"

namespace weft::model {
namespace {

// That of the logits where the dtype is theirs, or where there shall be no copy beside them.
Tensor memory_of_gradients(const Context& context, const Tensor& logits_TV) {
  if (context.dtype() == DType::F32) return logits_TV;
  if (context.config.cross_entropy_loss_fusion) return logits_TV.front_halves();
  return context.activation(logits_TV.shape());
}

}  // namespace

void head_forward(const Context& context,
                  HeadState& state,
                  const HeadWeights& weights,
                  const Tensor& x_TD,
                  const Tensor& labels_T,
                  const Tensor& loss_sum_1) {
  Stream& stream = context.stream;
  const std::int64_t tokens = x_TD.dim(0);
  norm_forward(context, state.norm, x_TD, weights.norm_D);
  state.logits_TV = context.activation_fp32({tokens, weights.head_VD.dim(0)});
  kernels::linear_forward(stream, state.logits_TV, state.norm.y_TD, weights.head_VD);
  state.lse_T = context.activation_fp32({tokens});
  Tensor loss_T = context.activation_fp32({tokens});
  kernels::cross_entropy_forward(stream, loss_T, state.lse_T, state.logits_TV, labels_T);
  kernels::sum(stream, loss_sum_1, loss_T);
}

Tensor head_dgrad(const Context& context,
                  HeadState& state,
                  const HeadWeights& weights,
                  const Tensor& x_TD,
                  const Tensor& labels_T,
                  std::int64_t labelled) {
  Stream& stream = context.stream;
  const float scale = context.loss_scale / static_cast<float>(labelled);
  state.dlogits_TV = memory_of_gradients(context, state.logits_TV);
  kernels::cross_entropy_dgrad(stream,
                               state.dlogits_TV,
                               state.logits_TV,
                               state.lse_T,
                               labels_T,
                               scale);
  state.logits_TV.reset();
  state.lse_T.reset();
  state.norm.dy_TD = context.activation(x_TD.shape());
  kernels::linear_dgrad(stream, state.norm.dy_TD, state.dlogits_TV, weights.head_VD);
  Tensor dx_TD = context.output(x_TD.shape());
  kernels::rms_norm_dgrad(stream,
                          dx_TD,
                          state.norm.dy_TD,
                          x_TD,
                          weights.norm_D,
                          state.norm.rstd_T1);
  return dx_TD;
}

void head_wgrad(const Context& context,
                HeadState& state,
                const HeadWeights& gradients,
                const Tensor& x_TD) {
  weight_gradient(context, gradients.head_VD, state.dlogits_TV, state.norm.y_TD);
  norm_wgrad(context, state.norm, x_TD, gradients.norm_D);
  state = {};
}

}  // namespace weft::model
