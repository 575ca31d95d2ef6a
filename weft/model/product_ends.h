// The two ends of the products of a sub-layer (attention, a feed-forward): between a norm and the
// residual, or a route and its merge. Tensor-parallel ranks share the products; between the ends a
// rank has all tokens of its group, outside of them its own. So `gather` and `scatter` stand at the
// ends, where there are such ranks, and change what is here; without them it goes through.
//
// Suffixes: T tokens (of the rank or of its group), D hidden, N and K what a product makes and
// reads.
#pragma once

#include "weft/model/norm.h"

namespace weft::model {

struct ProductEnds {
  Tensor own_x_TD;  // of the rank's tokens, for who gathers them (again)
  Tensor x_TD;      // what the first product reads
  Tensor y_TD;      // what the last one made
  Tensor dy_TD;     // their gradients
  Tensor dx_TD;
  // Where they are exchanged in steps: the gradient of the rank's own tokens, and what every rank
  // made of these, one after the other, until it is summed.
  Tensor own_dy_TD, y_parts_TD, dx_parts_TD;

  void take_input(const Tensor& own_TD) { own_x_TD = x_TD = own_TD; }
  void drop_input();
  // But for what was gathered of it.
  void drop_own_input();
};

// What a step of the first product reads and what one of the last makes, with their gradients; of
// one that is not made in steps, all rows.
Tensor product_input(const Context&, const ProductEnds&);
Tensor product_output(const Context&, ProductEnds&);
Tensor product_output_gradient(const Context&, const ProductEnds&);
Tensor product_input_gradient(const Context&, ProductEnds&);
// Rows of what the first product makes.
std::int64_t product_rows(const Context&, const ProductEnds&);
// y = x w^T, of a step's rows or of all.
void product_forward(const Context&, const Tensor& y_TN, const Tensor& x_TK, const Tensor& w_NK);
// For the weight gradient: of all rows.
Tensor take_whole_gradient(const Context&, ProductEnds&);

// Where what ranks made came in steps, sums it in the order of the ranks.
void settle_output(const Context&, ProductEnds&, tensor::Reuse memory = tensor::Reuse::InOrder);
void settle_input_gradient(const Context&, ProductEnds&);

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
