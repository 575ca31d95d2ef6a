// The experts this rank owns: rows by expert, grouped FC1, SwiGLU times the router's probability,
// grouped FC2. Suffixes: X received rows, D hidden, F expert width, L local experts.
#pragma once

#include "weft/model/moe/alltoall.h"

namespace weft::model {

struct ExpertsWeights {
  Tensor fc1_LFD, fc2_LDF;  // fc1 has 2F rows an expert: gate, then up
};

struct ExpertsState {
  std::vector<std::int64_t> rows_L;  // rows of each local expert
  Tensor x_XD, p_X;                  // in expert order
  Tensor fc1_X2F, act_XF;
  Tensor doutput_XD;  // in expert order
  Tensor dfc1_X2F;
};

void experts_forward(const Context&, ExpertsState&, const ExpertsWeights&, DispatchState&);
void experts_dgrad(const Context&, ExpertsState&, const ExpertsWeights&, DispatchState&);
void experts_wgrad(const Context&, ExpertsState&, const ExpertsWeights& gradients);

}  // namespace weft::model
