// Routing, in two parts that can be nodes of their own: `norm`, and `choose`: router logits in
// fp32, the k best experts of each token with their probabilities, and the auxiliary losses.
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

// Reads the output of state.norm, as do the others.
void choose_forward(const Context&, RouteState&, const RouteWeights&, const RouterSums& sums);
// The logits and the choice once more: the same, and nothing is counted twice.
void choose_again(const Context&, RouteState&, const RouteWeights&);
void drop_choice(RouteState&);
// Expects the gradients that permute left in state: of the norm's output, to which the router's
// part is added, and of the probabilities.
void choose_dgrad(const Context&, RouteState&, const RouteWeights&, const RouterSums& sums);
void choose_wgrad(const Context&, RouteState&, const RouteWeights& gradients);

}  // namespace weft::model
