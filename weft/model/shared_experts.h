// Shared experts: a feed-forward that every token of a MoE layer passes, beside the routed ones. It
// reads the routing norm's output, and merge adds what it makes.
//
// Two parts, so that the first can run while rows travel to the routed experts and the second while
// they travel back: `fc1` (FC1, SwiGLU) and `fc2` (FC2, and where there is one the gate: times
// sigmoid(x . gate)). Suffixes: T tokens, D hidden, F width of the shared experts together.
#pragma once

#include "weft/model/norm.h"

namespace weft::model {

struct SharedExpertsWeights {
  Tensor fc1_FD, fc2_DF;  // fc1 has 2F rows: gate, then up
  Tensor gate_1D;         // undefined without
};

struct SharedExpertsState {
  Tensor x_TD;  // the norm's output
  Tensor fc1_T2F, act_TF;
  Tensor ungated_TD, gate_T1;  // FC2's output and the gate's logits, fp32; undefined without
  Tensor gate_x_TD;  // x for the gate's weights: either part's weight gradient may be the last
  Tensor y_TD;
  Tensor doutput_TD, dgate_T1;  // of FC2's output, and of the logits
  Tensor dact_TF, dfc1_T2F;
  Tensor dx_gate_TD;  // the gate's part of dx; undefined without
  Tensor dx_TD;
};

void shared_fc1_forward(const Context&,
                        SharedExpertsState&,
                        const SharedExpertsWeights&,
                        const Tensor& x_TD);
void shared_fc2_forward(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
// y += the shared experts' output, which is dropped.
void add_shared_output(const Context&, SharedExpertsState&, const Tensor& y_TD);

void shared_fc2_dgrad(const Context&,
                      SharedExpertsState&,
                      const SharedExpertsWeights&,
                      const Tensor& dy_TD);
void shared_fc2_wgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights& gradients);
void shared_fc1_dgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
// With the other weight gradient, in any order, drops the state, but for the gradient of x where
// that has not been added yet.
void shared_fc1_wgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights& gradients);
// The gradient of the norm's output += that of x, which is dropped.
void add_shared_gradient(const Context&, SharedExpertsState&, const NormState& norm);

}  // namespace weft::model
