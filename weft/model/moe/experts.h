// The experts this rank owns, in four parts that can be nodes of their own: `arrange` (rows by
// expert), `fc1` (grouped FC1), `act` (SwiGLU times the router's probability) and `fc2` (grouped
// FC2, rows back into the order they came in). Suffixes: X received rows, D hidden, F expert width,
// L local experts.
#pragma once

#include "weft/model/moe/dispatcher.h"

namespace weft::model {

struct ExpertsWeights {
  Tensor fc1_LFD, fc2_LDF;  // fc1 has 2F rows an expert: gate, then up
};

// What rows are made of once more: their tokens, on the ways that the forward has laid out.
struct RowSource {
  Tensor tokens_TD;
  DispatchState ways;
};

// Each gradient drops what it is the last to read; after the last weight gradient, nothing is left.
struct ExpertsState {
  ExpertRows in;
  Tensor fc1_X2F, act_XF;
  Tensor doutput_XD, fc2_rows_L;  // in expert order; for FC2's weight gradient
  RowSource doutput_source;       // what is kept in place of doutput_XD where it waits long
  Tensor dact_XF, dfc1_X2F, dp_X, dx_XD;
};

// What the experts read, by expert.
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

// Lets go of the gradient's rows, behind their dgrad: the wgrad makes them again of `dy_TD`, the
// tokens' gradients. Only where no row leaves its rank.
void drop_experts_gradient_rows(ExpertsState&, const DispatchState&, const Tensor& dy_TD);
void experts_fc2_wgrad(const Context&,
                       ExpertsState&,
                       const ExpertsWeights& gradients,
                       const Dispatcher&);
void experts_fc1_wgrad(const Context&, ExpertsState&, const ExpertsWeights& gradients);

// What the part's forward makes again; of what was arranged the rows, which have travelled again.
void drop_experts_arrange(ExpertsState&);
void experts_arrange_again(const Context&, ExpertsState&, const Dispatcher&, DispatchState&);
void drop_experts_fc1(ExpertsState&);
void drop_experts_act(ExpertsState&);

}  // namespace weft::model
