// A dense layer's feed-forward: norm, FC1, SwiGLU, FC2, residual.
#pragma once

#include "weft/model/norm.h"

namespace weft::model {

struct MlpWeights {
  Tensor norm_D, fc1_FD, fc2_DF;  // fc1 has 2F rows: gate, then up
};

struct MlpState {
  NormState norm;
  Tensor fc1_T2F, act_TF;
  Tensor dfc1_T2F;
};

// y = h + mlp(norm(h)).
Tensor mlp_forward(const Context&, MlpState&, const MlpWeights&, const Tensor& h_TD);
Tensor mlp_dgrad(const Context&,
                 MlpState&,
                 const MlpWeights&,
                 const Tensor& h_TD,
                 const Tensor& dy_TD);
void mlp_wgrad(const Context&,
               MlpState&,
               const MlpWeights& gradients,
               const Tensor& h_TD,
               const Tensor& dy_TD);

}  // namespace weft::model
