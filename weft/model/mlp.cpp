#include "weft/model/mlp.h"

namespace weft::model {

Tensor mlp_forward(const Context& context,
                   MlpState& state,
                   const MlpWeights& weights,
                   const Tensor& h_TD) {
  Stream& stream = context.stream;
  const std::int64_t tokens = h_TD.dim(0), f = weights.fc2_DF.dim(1);
  norm_forward(context, state.norm, h_TD, weights.norm_D);
  state.fc1_T2F = context.activation({tokens, 2 * f});
  kernels::linear_forward(stream, state.fc1_T2F, state.norm.y_TD, weights.fc1_FD);
  state.act_TF = context.activation({tokens, f});
  kernels::swiglu_forward(stream, state.act_TF, state.fc1_T2F);
  Tensor y_TD = context.output(h_TD.shape());
  kernels::linear_forward(stream, y_TD, state.act_TF, weights.fc2_DF);
  kernels::add(stream, y_TD, y_TD, h_TD);
  return y_TD;
}

Tensor mlp_dgrad(const Context& context,
                 MlpState& state,
                 const MlpWeights& weights,
                 const Tensor& h_TD,
                 const Tensor& dy_TD) {
  Stream& stream = context.stream;
  Tensor dact_TF = context.activation(state.act_TF.shape());
  kernels::linear_dgrad(stream, dact_TF, dy_TD, weights.fc2_DF);
  state.dfc1_T2F = context.activation(state.fc1_T2F.shape());
  kernels::swiglu_dgrad(stream, state.dfc1_T2F, dact_TF, state.fc1_T2F);
  state.fc1_T2F.reset();
  state.norm.dy_TD = context.activation(h_TD.shape());
  kernels::linear_dgrad(stream, state.norm.dy_TD, state.dfc1_T2F, weights.fc1_FD);
  return norm_dgrad(context, state.norm, h_TD, weights.norm_D, dy_TD);
}

void mlp_wgrad(const Context& context,
               MlpState& state,
               const MlpWeights& gradients,
               const Tensor& h_TD,
               const Tensor& dy_TD) {
  kernels::linear_wgrad(context.stream, gradients.fc2_DF, dy_TD, state.act_TF);
  kernels::linear_wgrad(context.stream, gradients.fc1_FD, state.dfc1_T2F, state.norm.y_TD);
  norm_wgrad(context, state.norm, h_TD, gradients.norm_D);
  state = {};
}

}  // namespace weft::model
