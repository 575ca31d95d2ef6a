// The experts this rank owns: rows by expert, grouped FC1, SwiGLU times the router's probability,
// grouped FC2. Suffixes: X received rows, D hidden, F expert width, L local experts.
#pragma once

#include "weft/model/moe/dispatcher.h"

namespace weft::model {

struct ExpertsWeights {
  Tensor fc1_LFD, fc2_LDF;  // fc1 has 2F rows an expert: gate, then up
};

struct ExpertsState {
  ExpertRows in;
  Tensor fc1_X2F, act_XF;
  Tensor doutput_XD;  // in expert order
  Tensor dfc1_X2F;
};

void experts_forward(const Context&,
                     ExpertsState&,
                     const ExpertsWeights&,
                     const Dispatcher&,
                     DispatchState&);
void experts_dgrad(const Context&,
                   ExpertsState&,
                   const ExpertsWeights&,
                   const Dispatcher&,
                   DispatchState&);
void experts_wgrad(const Context&, ExpertsState&, const ExpertsWeights& gradients);

}  // namespace weft::model
