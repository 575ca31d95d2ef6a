// Experts of this rank, in four parts that can be separate nodes: `arrange` (rows by expert), `fc1`
// (grouped FC1), `act` (SwiGLU times the router's probability) and `fc2` (grouped FC2, rows back in
// order of arrival). Suffixes: X received rows, D hidden, F expert width, L local experts.
#pragma once

#include "weft/model/moe/dispatcher.h"
#include "weft/model/product.h"

namespace weft::model {

struct ExpertsWeights {
  Product fc1_LFD, fc2_LDF;  // fc1 has 2F rows per expert: gate, then up
};

// Source for making rows again: their tokens, and the routes laid out by the forward.
struct RowSource {
  Tensor tokens_TD;
  DispatchState ways;
};

// A gradient drops tensors that it reads last; after the last weight gradient, the state is empty.
struct ExpertsState {
  ExpertRows in;
  Tensor fc1_X2F, act_XF;
  Tensor doutput_XD, fc2_rows_L;  // in expert order; for FC2's weight gradient
  RowSource doutput_source;       // kept in place of doutput_XD during a long wait
  Tensor dact_XF, dfc1_X2F, dp_X, dx_XD;
};

// Input of the experts, by expert.
void experts_arrange_forward(const Context&, ExpertsState&, const Dispatcher&, DispatchState&);
void experts_fc1_forward(const Context&, ExpertsState&, const ExpertsWeights&);
void experts_act_forward(const Context&, ExpertsState&);
void experts_fc2_forward(const Context&,
                         const ExpertsState&,
                         const ExpertsWeights&,
                         const Dispatcher&,
                         DispatchState&);

void experts_fc2_dgrad(const Context&,
                       ExpertsState&,
                       const ExpertsWeights&,
                       const Dispatcher&,
                       DispatchState&);
void experts_act_dgrad(const Context&, ExpertsState&);
void experts_fc1_dgrad(const Context&, ExpertsState&, const ExpertsWeights&);
void experts_arrange_dgrad(const Context&, ExpertsState&, const Dispatcher&, DispatchState&);

// Frees the gradient's rows after dgrad; wgrad makes them again from `dy_TD`, the tokens'
// gradients. Only if no row leaves its rank.
void drop_experts_gradient_rows(ExpertsState&, const DispatchState&, const Tensor& dy_TD);
void experts_fc2_wgrad(const Context&, ExpertsState&, const ExpertsWeights&, const Dispatcher&);
void experts_fc1_wgrad(const Context&, ExpertsState&, const ExpertsWeights&);

// Drops what the recomputed part makes again; from arrange only the rows, which travel again.
void drop_experts_arrange(ExpertsState&);
void experts_arrange_again(const Context&, ExpertsState&, const Dispatcher&, DispatchState&);
void drop_experts_fc1(ExpertsState&);
void drop_experts_act(ExpertsState&);

}  // namespace weft::model
