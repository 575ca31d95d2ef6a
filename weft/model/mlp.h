// A dense layer's feed-forward, in three parts that can be nodes of their own: `fc1` (norm, FC1),
// `act` (SwiGLU) and `fc2` (FC2, residual). Suffixes: T tokens, D hidden, F width.
#pragma once

#include "weft/model/norm.h"

namespace weft::model {

struct MlpWeights {
  Tensor norm_D, fc1_FD, fc2_DF;  // fc1 has 2F rows: gate, then up
};

// Each gradient drops what it is the last to read; after the last weight gradient, nothing is left.
struct MlpState {
  NormState norm;
  Tensor fc1_T2F, act_TF;
  Tensor fc2_dy_TD;  // for FC2's weight gradient, which may run after FC1's input gradient
  Tensor dact_TF, dfc1_T2F;
};

void mlp_fc1_forward(const Context&, MlpState&, const MlpWeights&, const Tensor& h_TD);
void mlp_act_forward(const Context&, MlpState&);
// Returns y = h + FC2.
Tensor mlp_fc2_forward(const Context&, const MlpState&, const MlpWeights&, const Tensor& h_TD);

void mlp_fc2_dgrad(const Context&, MlpState&, const MlpWeights&, const Tensor& dy_TD);
void mlp_act_dgrad(const Context&, MlpState&);
// Returns dh for dy.
Tensor mlp_fc1_dgrad(const Context&,
                     MlpState&,
                     const MlpWeights&,
                     const Tensor& h_TD,
                     const Tensor& dy_TD);

void mlp_fc2_wgrad(const Context&, MlpState&, const MlpWeights& gradients);
void mlp_fc1_wgrad(const Context&, MlpState&, const MlpWeights& gradients, const Tensor& h_TD);

// What the part's forward makes again.
void drop_mlp_fc1(MlpState&);
void drop_mlp_act(MlpState&);

}  // namespace weft::model
