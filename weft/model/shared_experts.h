// Shared experts: a feed-forward that every token of a MoE layer passes, beside the routed experts.
// It reads the routing norm's output; merge adds its output.
//
// It has two halves: the first can run while rows travel to the routed experts, the second while
// they travel back. `fc1` (FC1, SwiGLU), then `fc2` and an optional `gate` (times sigmoid(x .
// gate), on the rank's own tokens). Suffixes: T tokens, D hidden, F total width of the shared
// experts (of the rank).
#pragma once

#include "weft/model/product_ends.h"

namespace weft::model {

struct SharedExpertsWeights {
  Product fc1_FD, fc2_DF;  // fc1 has 2F rows: gate, then up
  Product gate_1D;         // undefined: no gate
};

struct SharedExpertsState {
  ProductEnds ends;
  Tensor fc1_T2F, act_TF;
  Tensor ungated_TD, gate_T1;  // FC2's output and the gate's fp32 logits; undefined: no gate
  Tensor gate_x_TD;            // input of the gate
  Tensor fc2_dy_TD, dgate_T1;  // gradients of FC2's output and of the logits
  Tensor dact_TF, dfc1_T2F;
  Tensor dx_gate_TD;  // gate's part of dx; undefined: no gate
};

// x: the routing norm's output.
void take_shared_input(SharedExpertsState&, const SharedExpertsWeights&, const Tensor& x_TD);
void drop_shared_input(SharedExpertsState&);
void shared_fc1_forward(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_fc2_forward(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_gate_forward(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
// y += the shared experts' output, which is dropped.
void add_shared_output(const Context&, SharedExpertsState&, const Tensor& y_TD);

// Replaces ends.dy, the gradient of the gate's output, by that of its input.
void shared_gate_dgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_gate_wgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_fc2_dgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_fc2_wgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
void shared_fc1_dgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
// The weight gradients, in any order, drop the state together, except the gradient of x until that
// is added.
void shared_fc1_wgrad(const Context&, SharedExpertsState&, const SharedExpertsWeights&);
// Drops what recomputed FC1 makes again.
void drop_shared_fc1(SharedExpertsState&);
// Adds the gradient of x to that of the norm's output, and drops it.
void add_shared_gradient(const Context&, SharedExpertsState&, const NormState& norm);

}  // namespace weft::model
