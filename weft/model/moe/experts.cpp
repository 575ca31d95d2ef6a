#include "weft/model/moe/experts.h"

namespace weft::model {

void experts_forward(const Context& context,
                     ExpertsState& state,
                     const ExpertsWeights& weights,
                     DispatchState& dispatch) {
  Stream& stream = context.stream;
  state.rows_L = dispatch.plan.expert_rows;
  const std::span<const std::int64_t> rows = state.rows_L;
  const std::int64_t received = dispatch.plan.received, f = weights.fc2_LDF.dim(2);
  state.x_XD = reorder(context, dispatch, dispatch.received_XD, RowOrder::Expert);
  state.p_X = reorder(context, dispatch, dispatch.received_p_X, RowOrder::Expert);
  dispatch.received_XD.reset();
  dispatch.received_p_X.reset();
  state.fc1_X2F = context.activation({received, 2 * f});
  kernels::grouped_linear_forward(stream, state.fc1_X2F, state.x_XD, weights.fc1_LFD, rows);
  state.act_XF = context.activation({received, f});
  kernels::weighted_swiglu_forward(stream, state.act_XF, state.fc1_X2F, state.p_X);
  Tensor output_XD = context.wire({received, state.x_XD.dim(1)});
  kernels::grouped_linear_forward(stream, output_XD, state.act_XF, weights.fc2_LDF, rows);
  dispatch.output_XD = reorder(context, dispatch, output_XD, RowOrder::Wire);
}

void experts_dgrad(const Context& context,
                   ExpertsState& state,
                   const ExpertsWeights& weights,
                   DispatchState& dispatch) {
  Stream& stream = context.stream;
  const std::span<const std::int64_t> rows = state.rows_L;
  state.doutput_XD = reorder(context, dispatch, dispatch.doutput_XD, RowOrder::Expert);
  dispatch.doutput_XD.reset();
  Tensor dact_XF = context.activation(state.act_XF.shape());
  kernels::grouped_linear_dgrad(stream, dact_XF, state.doutput_XD, weights.fc2_LDF, rows);
  state.dfc1_X2F = context.activation(state.fc1_X2F.shape());
  Tensor dp_X = context.wire_fp32(state.p_X.shape());
  kernels::weighted_swiglu_dgrad(stream, state.dfc1_X2F, dp_X, dact_XF, state.fc1_X2F, state.p_X);
  state.fc1_X2F.reset();
  state.p_X.reset();
  Tensor dx_XD = context.wire(state.x_XD.shape());
  kernels::grouped_linear_dgrad(stream, dx_XD, state.dfc1_X2F, weights.fc1_LFD, rows);
  dispatch.dreceived_XD = reorder(context, dispatch, dx_XD, RowOrder::Wire);
  dispatch.dreceived_p_X = reorder(context, dispatch, dp_X, RowOrder::Wire);
}

void experts_wgrad(const Context& context, ExpertsState& state, const ExpertsWeights& gradients) {
  kernels::grouped_linear_wgrad(context.stream,
                                gradients.fc2_LDF,
                                state.doutput_XD,
                                state.act_XF,
                                state.rows_L);
  kernels::grouped_linear_wgrad(context.stream,
                                gradients.fc1_LFD,
                                state.dfc1_X2F,
                                state.x_XD,
                                state.rows_L);
  state = {};
}

}  // namespace weft::model
