// Routing: norm, router logits in fp32, the k best experts of each token with their probabilities,
// and the auxiliary losses.
//
// Suffixes: T tokens, D hidden, E experts, k experts a token.
#pragma once

#include "weft/model/moe/balance.h"
#include "weft/model/norm.h"

namespace weft::model {

struct RouteWeights {
  Tensor norm_D, router_ED;
  Tensor bias_E;  // fp32, of the selection; undefined where there is none
};

// A slot that its expert has no room for has experts_Tk = -1 and p_Tk = 0.
struct RouteState {
  Tensor given_Tk;  // int32: experts chosen elsewhere; undefined: the router chooses
  NormState norm;   // its output is what travels to the experts
  Tensor logits_TE, p_Tk, experts_Tk;
  Tensor chosen_p_Tk, chosen_Tk;  // before slots are dropped; undefined where none can be
  BalanceState balance;
  Tensor dp_Tk;
  Tensor dlogits_TE;
};

void route_forward(const Context&,
                   RouteState&,
                   const RouteWeights&,
                   const Tensor& h_TD,
                   const RouterSums& sums);
// The logits and the choice once more, from the norm's output: the same, and nothing is counted
// twice.
void route_recompute(const Context&, RouteState&, const RouteWeights&);
void drop_route(RouteState&);
// Expects the gradients that permute left in state: of the norm's output (without the router's
// part) and of the probabilities. Returns dh = the norm's gradient + dy, the gradient of the
// residual.
Tensor route_dgrad(const Context&,
                   RouteState&,
                   const RouteWeights&,
                   const Tensor& h_TD,
                   const Tensor& dy_TD,
                   const RouterSums& sums);
void route_wgrad(const Context&, RouteState&, const RouteWeights& gradients, const Tensor& h_TD);

}  // namespace weft::model
