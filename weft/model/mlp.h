// Dense feed-forward between its norm and its residual (product_ends.h), in three parts that can be
// separate nodes: `fc1`, `act` (SwiGLU) and `fc2`. Suffixes: T tokens, D hidden, F width (of the
// rank).
#pragma once

#include "weft/model/product_ends.h"

namespace weft::model {

struct MlpWeights {
  Weight norm_D;
  Product fc1_FD, fc2_DF;  // fc1 has 2F rows: gate, then up
};

// A gradient drops tensors that it reads last; after the last weight gradient, the state is empty.
struct MlpState {
  NormState norm;
  ProductEnds ends;
  Tensor fc1_T2F, act_TF;
  Tensor fc2_dy_TD;  // for FC2's weight gradient, which may run after FC1's input gradient
  Tensor dact_TF, dfc1_T2F;
};

void mlp_fc1_forward(const Context&, MlpState&, const MlpWeights&);
void mlp_act_forward(const Context&, MlpState&);
void mlp_fc2_forward(const Context&, MlpState&, const MlpWeights&);

void mlp_fc2_dgrad(const Context&, MlpState&, const MlpWeights&);
void mlp_act_dgrad(const Context&, MlpState&);
void mlp_fc1_dgrad(const Context&, MlpState&, const MlpWeights&);

void mlp_fc2_wgrad(const Context&, MlpState&, const MlpWeights&);
void mlp_fc1_wgrad(const Context&, MlpState&, const MlpWeights&);

// Drops what the recomputed part makes again.
void drop_mlp_fc1(MlpState&);
void drop_mlp_act(MlpState&);

}  // namespace weft::model
