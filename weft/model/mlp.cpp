#include "weft/model/mlp.h"

#include <utility>

#include "weft/model/weight_gradient.h"

namespace weft::model {

void mlp_fc1_forward(const Context& context, MlpState& state, const MlpWeights& weights) {
  if (context.opens()) {
    state.fc1_T2F = context.activation({product_rows(context, state.ends), weights.fc1_FD.dim(0)});
  }
  product_forward(context,
                  context.of_step(state.fc1_T2F),
                  product_input(context, state.ends),
                  weights.fc1_FD);
}

void mlp_act_forward(const Context& context, MlpState& state) {
  state.act_TF = context.activation({state.fc1_T2F.dim(0), state.fc1_T2F.dim(1) / 2});
  kernels::swiglu_forward(context.stream, state.act_TF, state.fc1_T2F);
}

void mlp_fc2_forward(const Context& context, MlpState& state, const MlpWeights& weights) {
  if (context.opens()) {
    state.ends.y_TD = context.output({state.act_TF.dim(0), weights.fc2_DF.dim(0)});
  }
  product_forward(context,
                  product_output(context, state.ends),
                  context.of_step(state.act_TF),
                  weights.fc2_DF);
}

void mlp_fc2_dgrad(const Context& context, MlpState& state, const MlpWeights& weights) {
  if (context.opens()) state.dact_TF = context.activation(state.act_TF.shape());
  kernels::linear_dgrad(context.stream,
                        context.of_step(state.dact_TF),
                        product_output_gradient(context, state.ends),
                        weights.fc2_DF);
  if (context.closes()) state.fc2_dy_TD = take_whole_gradient(context, state.ends);
}

void mlp_act_dgrad(const Context& context, MlpState& state) {
  state.dfc1_T2F = context.activation(state.fc1_T2F.shape());
  kernels::swiglu_dgrad(context.stream, state.dfc1_T2F, state.dact_TF, state.fc1_T2F);
  state.fc1_T2F.reset();
  state.dact_TF.reset();
}

void mlp_fc1_dgrad(const Context& context, MlpState& state, const MlpWeights& weights) {
  if (context.opens()) {
    state.ends.dx_TD = context.activation({state.dfc1_T2F.dim(0), weights.fc1_FD.dim(1)});
  }
  kernels::linear_dgrad(context.stream,
                        product_input_gradient(context, state.ends),
                        context.of_step(state.dfc1_T2F),
                        weights.fc1_FD);
}

void mlp_fc2_wgrad(const Context& context, MlpState& state, const MlpWeights& gradients) {
  weight_gradient(context, gradients.fc2_DF, state.fc2_dy_TD, state.act_TF);
  state.fc2_dy_TD.reset();
  state.act_TF.reset();
}

void mlp_fc1_wgrad(const Context& context, MlpState& state, const MlpWeights& gradients) {
  weight_gradient(context, gradients.fc1_FD, state.dfc1_T2F, state.ends.x_TD);
  state.ends.drop_input();
  state.dfc1_T2F.reset();
}

void drop_mlp_fc1(MlpState& state) { state.fc1_T2F.reset(); }

void drop_mlp_act(MlpState& state) { state.act_TF.reset(); }

}  // namespace weft::model
