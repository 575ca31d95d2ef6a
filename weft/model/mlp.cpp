#include "weft/model/mlp.h"

#include <utility>

#include "weft/model/product.h"

namespace weft::model {

void mlp_fc1_forward(const Context& context, MlpState& state, const MlpWeights& weights) {
  first_product_forward(context, state.fc1_T2F, state.ends, weights.fc1_FD);
}

void mlp_act_forward(const Context& context, MlpState& state) {
  state.act_TF = context.activation({state.fc1_T2F.dim(0), state.fc1_T2F.dim(1) / 2});
  kernels::swiglu_forward(context.stream, state.act_TF, state.fc1_T2F);
}

void mlp_fc2_forward(const Context& context, MlpState& state, const MlpWeights& weights) {
  last_product_forward(context, state.ends, state.act_TF, weights.fc2_DF, context.output_memory);
}

void mlp_fc2_dgrad(const Context& context, MlpState& state, const MlpWeights& weights) {
  last_product_dgrad(context, state.dact_TF, state.ends, weights.fc2_DF);
  if (context.closes()) state.fc2_dy_TD = take_whole_gradient(context, state.ends);
}

void mlp_act_dgrad(const Context& context, MlpState& state) {
  state.dfc1_T2F = context.activation(state.fc1_T2F.shape());
  kernels::swiglu_dgrad(context.stream, state.dfc1_T2F, state.dact_TF, state.fc1_T2F);
  state.fc1_T2F.reset();
  state.dact_TF.reset();
}

void mlp_fc1_dgrad(const Context& context, MlpState& state, const MlpWeights& weights) {
  first_product_dgrad(context, state.ends, state.dfc1_T2F, weights.fc1_FD);
}

void mlp_fc2_wgrad(const Context& context, MlpState& state, const MlpWeights& weights) {
  product_wgrad(context, weights.fc2_DF, state.fc2_dy_TD, state.act_TF);
  state.fc2_dy_TD.reset();
  state.act_TF.reset();
}

void mlp_fc1_wgrad(const Context& context, MlpState& state, const MlpWeights& weights) {
  product_wgrad(context, weights.fc1_FD, state.dfc1_T2F, state.ends.x_TD);
  state.ends.drop_input();
  state.dfc1_T2F.reset();
}

void drop_mlp_fc1(MlpState& state) { state.fc1_T2F.reset(); }

void drop_mlp_act(MlpState& state) { state.act_TF.reset(); }

}  // namespace weft::model
