#include "weft/model/shared_experts.h"

#include <utility>

#include "weft/model/product.h"

namespace weft::model {
namespace {

// Logits are a (T, 1) matrix; kernels with one value per row want a vector.
Tensor by_token(const Tensor& column_T1) { return column_T1.view({column_T1.dim(0)}); }

}  // namespace

void take_shared_input(SharedExpertsState& state,
                       const SharedExpertsWeights& weights,
                       const Tensor& x_TD) {
  state.ends.take_input(x_TD);
  if (weights.gate_1D.defined()) state.gate_x_TD = x_TD;
}

void drop_shared_input(SharedExpertsState& state) {
  state.ends.drop_own_input();
  state.gate_x_TD.reset();
}

void shared_fc1_forward(const Context& context,
                        SharedExpertsState& state,
                        const SharedExpertsWeights& weights) {
  first_product_forward(context, state.fc1_T2F, state.ends, weights.fc1_FD);
  if (context.opens()) {
    state.act_TF = context.activation({state.fc1_T2F.dim(0), state.fc1_T2F.dim(1) / 2});
  }
  kernels::swiglu_forward(context.stream,
                          context.of_step(state.act_TF),
                          context.of_step(state.fc1_T2F));
}

void shared_fc2_forward(const Context& context,
                        SharedExpertsState& state,
                        const SharedExpertsWeights& weights) {
  last_product_forward(context, state.ends, state.act_TF, weights.fc2_DF);
}

void shared_gate_forward(const Context& context,
                         SharedExpertsState& state,
                         const SharedExpertsWeights& weights) {
  const Tensor& x_TD = state.gate_x_TD;
  Stream& stream = context.stream;
  settle_output(context, state.ends);
  state.ungated_TD = std::move(state.ends.y_TD);
  state.gate_T1 = product_forward(context, x_TD, weights.gate_1D);
  state.ends.y_TD = context.activation(x_TD.shape());
  kernels::gate_forward(stream, state.ends.y_TD, state.ungated_TD, by_token(state.gate_T1));
}

void add_shared_output(const Context& context, SharedExpertsState& state, const Tensor& y_TD) {
  settle_output(context, state.ends);
  kernels::add(context.stream, y_TD, y_TD, state.ends.y_TD);
  state.ends.y_TD.reset();
}

void shared_gate_dgrad(const Context& context,
                       SharedExpertsState& state,
                       const SharedExpertsWeights& weights) {
  Stream& stream = context.stream;
  const Tensor dy_TD = std::move(state.ends.dy_TD);
  state.ends.dy_TD = context.activation(dy_TD.shape());
  state.dgate_T1 = context.activation_fp32(state.gate_T1.shape());
  kernels::gate_dgrad(stream,
                      state.ends.dy_TD,
                      by_token(state.dgate_T1),
                      dy_TD,
                      state.ungated_TD,
                      by_token(state.gate_T1));
  state.ungated_TD.reset();
  state.gate_T1.reset();
  state.dx_gate_TD = product_dgrad(context, state.dgate_T1, weights.gate_1D);
}

void shared_gate_wgrad(const Context& context,
                       SharedExpertsState& state,
                       const SharedExpertsWeights& weights) {
  product_wgrad(context, weights.gate_1D, state.dgate_T1, state.gate_x_TD);
  state.dgate_T1.reset();
  state.gate_x_TD.reset();
}

void shared_fc2_dgrad(const Context& context,
                      SharedExpertsState& state,
                      const SharedExpertsWeights& weights) {
  last_product_dgrad(context, state.dact_TF, state.ends, weights.fc2_DF);
  if (context.closes()) state.fc2_dy_TD = take_whole_gradient(context, state.ends);
}

void shared_fc2_wgrad(const Context& context,
                      SharedExpertsState& state,
                      const SharedExpertsWeights& weights) {
  product_wgrad(context, weights.fc2_DF, state.fc2_dy_TD, state.act_TF);
  state.fc2_dy_TD.reset();
  state.act_TF.reset();
}

void shared_fc1_dgrad(const Context& context,
                      SharedExpertsState& state,
                      const SharedExpertsWeights& weights) {
  Stream& stream = context.stream;
  if (context.opens()) {
    state.dfc1_T2F = context.activation(state.fc1_T2F.shape());
    kernels::swiglu_dgrad(stream, state.dfc1_T2F, state.dact_TF, state.fc1_T2F);
    state.dact_TF.reset();
    state.fc1_T2F.reset();
  }
  first_product_dgrad(context, state.ends, state.dfc1_T2F, weights.fc1_FD);
}

void shared_fc1_wgrad(const Context& context,
                      SharedExpertsState& state,
                      const SharedExpertsWeights& weights) {
  product_wgrad(context, weights.fc1_FD, state.dfc1_T2F, state.ends.x_TD);
  state.dfc1_T2F.reset();
  state.ends.drop_input();
}

void drop_shared_fc1(SharedExpertsState& state) {
  state.fc1_T2F.reset();
  state.act_TF.reset();
}

void add_shared_gradient(const Context& context, SharedExpertsState& state, const NormState& norm) {
  settle_input_gradient(context, state.ends);
  Tensor& dx_TD = state.ends.dx_TD;
  if (state.dx_gate_TD.defined()) {
    kernels::add(context.stream, dx_TD, dx_TD, state.dx_gate_TD);
    state.dx_gate_TD.reset();
  }
  kernels::add(context.stream, norm.dy_TD, norm.dy_TD, dx_TD);
  dx_TD.reset();
}

}  // namespace weft::model
