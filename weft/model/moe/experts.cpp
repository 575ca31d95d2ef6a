#include "weft/model/moe/experts.h"

#include "weft/model/product.h"

namespace weft::model {

void experts_arrange_forward(const Context& context,
                             ExpertsState& state,
                             const Dispatcher& dispatcher,
                             DispatchState& dispatch) {
  state.in = dispatcher.arrange_forward(context, dispatch);
}

void experts_fc1_forward(const Context& context,
                         ExpertsState& state,
                         const ExpertsWeights& weights) {
  const ExpertRows& in = state.in;
  state.fc1_X2F = product_forward(context, {in.x_XD, in.rows_L}, weights.fc1_LFD);
}

void experts_act_forward(const Context& context, ExpertsState& state) {
  state.act_XF = context.activation({state.fc1_X2F.dim(0), state.fc1_X2F.dim(1) / 2});
  kernels::weighted_swiglu_forward(context.stream, state.act_XF, state.fc1_X2F, state.in.p_X);
}

void experts_fc2_forward(const Context& context,
                         const ExpertsState& state,
                         const ExpertsWeights& weights,
                         const Dispatcher& dispatcher,
                         DispatchState& dispatch) {
  Tensor output_XD = product_forward(context,
                                     {state.act_XF, state.in.rows_L},
                                     weights.fc2_LDF,
                                     Tag::Communication);
  dispatcher.restore_forward(context, dispatch, output_XD);
}

void experts_fc2_dgrad(const Context& context,
                       ExpertsState& state,
                       const ExpertsWeights& weights,
                       const Dispatcher& dispatcher,
                       DispatchState& dispatch) {
  state.doutput_XD = dispatcher.arrange_dgrad(context, dispatch);
  state.fc2_rows_L = state.in.rows_L;
  state.dact_XF = product_dgrad(context, {state.doutput_XD, state.fc2_rows_L}, weights.fc2_LDF);
}

void experts_act_dgrad(const Context& context, ExpertsState& state) {
  state.dfc1_X2F = context.activation(state.fc1_X2F.shape());
  state.dp_X = context.wire_fp32(state.in.p_X.shape());
  kernels::weighted_swiglu_dgrad(context.stream,
                                 state.dfc1_X2F,
                                 state.dp_X,
                                 state.dact_XF,
                                 state.fc1_X2F,
                                 state.in.p_X);
  for (Tensor* done : {&state.fc1_X2F, &state.in.p_X, &state.dact_XF}) done->reset();
}

void experts_fc1_dgrad(const Context& context, ExpertsState& state, const ExpertsWeights& weights) {
  state.dx_XD = product_dgrad(context,
                              {state.dfc1_X2F, state.in.rows_L},
                              weights.fc1_LFD,
                              Tag::Communication);
}

void experts_arrange_dgrad(const Context& context,
                           ExpertsState& state,
                           const Dispatcher& dispatcher,
                           DispatchState& dispatch) {
  dispatcher.restore_dgrad(context, dispatch, state.dx_XD, state.dp_X);
  state.dx_XD.reset();
  state.dp_X.reset();
}

void drop_experts_gradient_rows(ExpertsState& state,
                                const DispatchState& dispatch,
                                const Tensor& dy_TD) {
  state.doutput_XD.reset();
  state.doutput_source = {.tokens_TD = dy_TD, .ways = dispatch};
}

void experts_fc2_wgrad(const Context& context,
                       ExpertsState& state,
                       const ExpertsWeights& weights,
                       const Dispatcher& dispatcher) {
  const RowSource source = std::move(state.doutput_source);
  if (source.tokens_TD.defined()) {
    state.doutput_XD = dispatcher.rows_again(context, source.ways, source.tokens_TD);
  }
  product_wgrad(context, weights.fc2_LDF, {state.doutput_XD, state.fc2_rows_L}, state.act_XF);
  for (Tensor* done : {&state.doutput_XD, &state.act_XF, &state.fc2_rows_L}) done->reset();
}

void experts_fc1_wgrad(const Context& context, ExpertsState& state, const ExpertsWeights& weights) {
  product_wgrad(context, weights.fc1_LFD, {state.dfc1_X2F, state.in.rows_L}, state.in.x_XD);
  state.in = {};
  state.dfc1_X2F.reset();
}

void drop_experts_arrange(ExpertsState& state) { state.in.x_XD.reset(); }

void experts_arrange_again(const Context& context,
                           ExpertsState& state,
                           const Dispatcher& dispatcher,
                           DispatchState& dispatch) {
  state.in.x_XD = dispatcher.arrange_again(context, dispatch);
}

void drop_experts_fc1(ExpertsState& state) { state.fc1_X2F.reset(); }

void drop_experts_act(ExpertsState& state) { state.act_XF.reset(); }

}  // namespace weft::model
