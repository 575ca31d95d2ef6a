// Routing, in two parts that can be separate nodes: `norm`, and `choose`: router logits in fp32,
// the k best experts of each token with their probabilities, and the auxiliary losses.
//
// Suffixes: T tokens, D hidden, E experts, k experts per token.
#pragma once

#include "weft/model/moe/balance.h"
#include "weft/model/norm.h"
#include "weft/model/product.h"

namespace weft::model {

struct RouteWeights {
  Weight norm_D;
  Product router_ED;
  Tensor bias_E;  // fp32, for the selection only; undefined: none
};

// A dropped slot (over its expert's capacity) has experts_Tk = -1 and p_Tk = 0.
struct RouteState {
  Tensor given_Tk;  // int32: given experts; undefined: the router chooses
  NormState norm;   // its output travels to the experts
  Tensor logits_TE, p_Tk, experts_Tk;
  Tensor chosen_p_Tk, chosen_Tk;  // before slots are dropped; undefined: no capacity
  BalanceState balance;
  Tensor dp_Tk;
  Tensor dlogits_TE;
};

// Reads the output of state.norm, as the next functions do.
void choose_forward(const Context&, RouteState&, const RouteWeights&, const RouterSums& sums);
// Recomputes logits and choice with equal results; counts are not added again.
void choose_again(const Context&, RouteState&, const RouteWeights&);
void drop_choice(RouteState&);
// Needs in `state` the gradients left by permute: of the norm's output, to which the router's part
// is added, and of the probabilities.
void choose_dgrad(const Context&, RouteState&, const RouteWeights&, const RouterSums& sums);
void choose_wgrad(const Context&, RouteState&, const RouteWeights&);

}  // namespace weft::model
