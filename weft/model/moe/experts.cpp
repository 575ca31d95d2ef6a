#include "weft/model/moe/experts.h"

namespace weft::model {

void experts_forward(const Context& context,
                     ExpertsState& state,
                     const ExpertsWeights& weights,
                     const Dispatcher& dispatcher,
                     DispatchState& dispatch) {
  Stream& stream = context.stream;
  state.in = dispatcher.arrange_forward(context, dispatch);
  const ExpertRows& in = state.in;
  const std::int64_t rows = in.x_XD.dim(0), f = weights.fc2_LDF.dim(2);
  state.fc1_X2F = context.activation({rows, 2 * f});
  kernels::grouped_linear_forward(stream, state.fc1_X2F, in.x_XD, weights.fc1_LFD, in.rows_L);
  state.act_XF = context.activation({rows, f});
  kernels::weighted_swiglu_forward(stream, state.act_XF, state.fc1_X2F, in.p_X);
  Tensor output_XD = context.wire({rows, in.x_XD.dim(1)});
  kernels::grouped_linear_forward(stream, output_XD, state.act_XF, weights.fc2_LDF, in.rows_L);
  dispatcher.restore_forward(context, dispatch, output_XD);
}

void experts_dgrad(const Context& context,
                   ExpertsState& state,
                   const ExpertsWeights& weights,
                   const Dispatcher& dispatcher,
                   DispatchState& dispatch) {
  Stream& stream = context.stream;
  const Tensor& rows_L = state.in.rows_L;
  state.doutput_XD = dispatcher.arrange_dgrad(context, dispatch);
  Tensor dact_XF = context.activation(state.act_XF.shape());
  kernels::grouped_linear_dgrad(stream, dact_XF, state.doutput_XD, weights.fc2_LDF, rows_L);
  state.dfc1_X2F = context.activation(state.fc1_X2F.shape());
  Tensor dp_X = context.wire_fp32(state.in.p_X.shape());
  kernels::weighted_swiglu_dgrad(stream,
                                 state.dfc1_X2F,
                                 dp_X,
                                 dact_XF,
                                 state.fc1_X2F,
                                 state.in.p_X);
  state.fc1_X2F.reset();
  state.in.p_X.reset();
  Tensor dx_XD = context.wire(state.in.x_XD.shape());
  kernels::grouped_linear_dgrad(stream, dx_XD, state.dfc1_X2F, weights.fc1_LFD, rows_L);
  dispatcher.restore_dgrad(context, dispatch, dx_XD, dp_X);
}

void experts_wgrad(const Context& context, ExpertsState& state, const ExpertsWeights& gradients) {
  kernels::grouped_linear_wgrad(context.stream,
                                gradients.fc2_LDF,
                                state.doutput_XD,
                                state.act_XF,
                                state.in.rows_L);
  kernels::grouped_linear_wgrad(context.stream,
                                gradients.fc1_LFD,
                                state.dfc1_X2F,
                                state.in.x_XD,
                                state.in.rows_L);
  state = {};
}

}  // namespace weft::model
