// Shared experts: a feed-forward that every token of a MoE layer passes, beside the routed ones. It
// reads the routing norm's output, and merge adds what it makes.
//
// Two halves, so that the first can run while rows travel to the routed experts and the second
// while they travel back: `fc1` (FC1, SwiGLU), then `fc2` and, where there is one, `gate` (times
// sigmoid(x . gate), on the rank's own tokens). Suffixes: T tokens, D hidden, F width of the shared
// experts together (of the rank).
#pragma once

#include "weft/model/product_ends.h"

namespace weft::model {

struct SharedExpertsWeights {
  Tensor fc1_FD, fc2_DF;  // fc1 has 2F rows: gate, then up
  Tensor gate_1D;         // undefined without
};

struct SharedExpertsState {
  ProductEnds ends;
  Tensor fc1_T2F, act_TF;
  Tensor ungated_TD, gate_T1;  // FC2's output and the gate's logits, fp32; undefined without
  Tensor gate_x_TD;            // what the gate read
  Tensor fc2_dy_TD, dgate_T1;  // of FC2's output, and of the logits
  Tensor dact_TF, dfc1_T2F;
  Tensor dx_gate_TD;  // the gate's part of dx; undefined without
};

// x: the routing norm's output.
void take_shared_input(SharedExpertsState&, const SharedExpertsWeights&, const Tensor& x_TD);
void drop_shared_input(SharedExpertsState&);
void shared_fc1_forward(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_fc2_forward(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_gate_forward(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
// y += the shared experts' output, which is dropped.
void add_shared_output(const Context&, SharedExpertsState&, const Tensor& y_TD);

// Leaves the gradient of what it read in ends.dy, where that of what it made is.
void shared_gate_dgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_gate_wgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights& gradients);
void shared_fc2_dgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_fc2_wgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights& gradients);
void shared_fc1_dgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
// With the other weight gradients, in any order, drops the state, but for the gradient of x where
// that has not been added yet.
void shared_fc1_wgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights& gradients);
// What FC1 makes again.
void drop_shared_fc1(SharedExpertsState&);
// The gradient of the norm's output += that of x, which is dropped.
void add_shared_gradient(const Context&, SharedExpertsState&, const NormState& norm);

}  // namespace weft::model
