#include "weft/model/mlp.h"

#include "weft/model/weight_gradient.h"

namespace weft::model {

void mlp_fc1_forward(const Context& context,
                     MlpState& state,
                     const MlpWeights& weights,
                     const Tensor& h_TD) {
  norm_forward(context, state.norm, h_TD, weights.norm_D);
  state.fc1_T2F = context.activation({h_TD.dim(0), weights.fc1_FD.dim(0)});
  kernels::linear_forward(context.stream, state.fc1_T2F, state.norm.y_TD, weights.fc1_FD);
}

void mlp_act_forward(const Context& context, MlpState& state) {
  state.act_TF = context.activation({state.fc1_T2F.dim(0), state.fc1_T2F.dim(1) / 2});
  kernels::swiglu_forward(context.stream, state.act_TF, state.fc1_T2F);
}

Tensor mlp_fc2_forward(const Context& context,
                       const MlpState& state,
                       const MlpWeights& weights,
                       const Tensor& h_TD) {
  Tensor y_TD = context.output(h_TD.shape());
  kernels::linear_forward(context.stream, y_TD, state.act_TF, weights.fc2_DF);
  kernels::add(context.stream, y_TD, y_TD, h_TD);
  return y_TD;
}

void mlp_fc2_dgrad(const Context& context,
                   MlpState& state,
                   const MlpWeights& weights,
                   const Tensor& dy_TD) {
  state.dact_TF = context.activation({dy_TD.dim(0), weights.fc2_DF.dim(1)});
  kernels::linear_dgrad(context.stream, state.dact_TF, dy_TD, weights.fc2_DF);
  state.fc2_dy_TD = dy_TD;
}

void mlp_act_dgrad(const Context& context, MlpState& state) {
  state.dfc1_T2F = context.activation(state.fc1_T2F.shape());
  kernels::swiglu_dgrad(context.stream, state.dfc1_T2F, state.dact_TF, state.fc1_T2F);
  state.fc1_T2F.reset();
  state.dact_TF.reset();
}

Tensor mlp_fc1_dgrad(const Context& context,
                     MlpState& state,
                     const MlpWeights& weights,
                     const Tensor& h_TD,
                     const Tensor& dy_TD) {
  state.norm.dy_TD = context.activation(h_TD.shape());
  kernels::linear_dgrad(context.stream, state.norm.dy_TD, state.dfc1_T2F, weights.fc1_FD);
  return norm_dgrad(context, state.norm, h_TD, weights.norm_D, dy_TD);
}

void mlp_fc2_wgrad(const Context& context, MlpState& state, const MlpWeights& gradients) {
  weight_gradient(context, gradients.fc2_DF, state.fc2_dy_TD, state.act_TF);
  state.fc2_dy_TD.reset();
  state.act_TF.reset();
}

void mlp_fc1_wgrad(const Context& context,
                   MlpState& state,
                   const MlpWeights& gradients,
                   const Tensor& h_TD) {
  weight_gradient(context, gradients.fc1_FD, state.dfc1_T2F, state.norm.y_TD);
  norm_wgrad(context, state.norm, h_TD, gradients.norm_D);
  state.norm = {};
  state.dfc1_T2F.reset();
}

void drop_mlp_fc1(MlpState& state) {
  state.norm = {};
  state.fc1_T2F.reset();
}

void drop_mlp_act(MlpState& state) { state.act_TF.reset(); }

}  // namespace weft::model
