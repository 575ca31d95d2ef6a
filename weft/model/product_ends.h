// The two ends of the products of a sub-layer (attention, a feed-forward): between a norm and the
// residual, or a route and its merge. Tensor-parallel ranks share the products; between the ends a
// rank has all tokens of its group, outside of them its own. So `gather` and `scatter` stand at the
// ends, where there are such ranks, and change what is here; without them it goes through.
//
// Suffixes: T tokens (of the rank or of its group), D hidden.
#pragma once

#include "weft/model/norm.h"

namespace weft::model {

struct ProductEnds {
  Tensor own_x_TD;  // of the rank's tokens, for who gathers them (again)
  Tensor x_TD;      // what the first product reads
  Tensor y_TD;      // what the last one made
  Tensor dy_TD;     // their gradients
  Tensor dx_TD;

  void take_input(const Tensor& own_TD) { own_x_TD = x_TD = own_TD; }
  void drop_input();
};

// The norm in front of the products.
void sub_layer_norm_forward(const Context&,
                            NormState&,
                            ProductEnds&,
                            const Tensor& x_TD,
                            const Tensor& w_D);
// Returns the gradient of x; `dresidual_TD`: its part that came by the residual.
Tensor sub_layer_norm_dgrad(const Context&,
                            NormState&,
                            ProductEnds&,
                            const Tensor& x_TD,
                            const Tensor& w_D,
                            const Tensor& dresidual_TD);
// Drops the state.
void sub_layer_norm_wgrad(const Context&, NormState&, const Tensor& x_TD, const Tensor& dw_D);
// What its forward makes again.
void drop_sub_layer_norm(NormState&, ProductEnds&);

// Returns x + the products' output, in the memory of that.
Tensor residual_forward(const Context&, ProductEnds&, const Tensor& x_TD);

}  // namespace weft::model
