// Ends of a sub-layer's products (attention, a feed-forward): between a norm and the residual, or
// between a route and its merge. Tensor-parallel ranks share the products. Between the ends a rank
// has all tokens of its group, outside them its own. With such ranks, `gather` and `scatter` run at
// the ends and replace these tensors; otherwise the tensors pass through.
//
// Suffixes: T tokens (of the rank or of its group), D hidden, N and K a product's output and input.
#pragma once

#include "weft/model/norm.h"
#include "weft/model/product.h"

namespace weft::model {

struct ProductEnds {
  Tensor own_x_TD;  // the rank's tokens, kept for gathering (again)
  Tensor x_TD;      // input of the first product
  Tensor y_TD;      // output of the last product
  Tensor dy_TD;     // their gradients
  Tensor dx_TD;
  // For stepwise exchange: the gradient of the rank's own tokens, and all ranks' parts of these,
  // rank by rank, until they are summed.
  Tensor own_dy_TD, y_parts_TD, dx_parts_TD;

  void take_input(const Tensor& own_TD) { own_x_TD = x_TD = own_TD; }
  void drop_input();
  // Drops the own tokens, keeps gathered ones.
  void drop_own_input();
};

// The first and the last product of a sub-layer: the rows of context.step, or all rows. The call
// that opens allocates the result.
void first_product_forward(const Context&, Tensor& y_TN, const ProductEnds&, const Product& w);
void last_product_forward(const Context&,
                          ProductEnds&,
                          const Tensor& x_TK,
                          const Product& w,
                          tensor::Reuse memory = tensor::Reuse::InOrder);
void last_product_dgrad(const Context&, Tensor& dx_TK, const ProductEnds&, const Product& w);
void first_product_dgrad(const Context&, ProductEnds&, const Tensor& dy_TN, const Product& w);
// Gradient of all rows, for the weight gradient.
Tensor take_whole_gradient(const Context&, ProductEnds&);

// If parts came in steps, sums them in rank order.
void settle_output(const Context&, ProductEnds&, tensor::Reuse memory = tensor::Reuse::InOrder);
void settle_input_gradient(const Context&, ProductEnds&);

// Norm in front of the products.
void sub_layer_norm_forward(const Context&,
                            NormState&,
                            ProductEnds&,
                            const Tensor& x_TD,
                            const Weight& w_D);
// Returns the gradient of x; `dresidual_TD`: the part through the residual.
Tensor sub_layer_norm_dgrad(const Context&,
                            NormState&,
                            ProductEnds&,
                            const Tensor& x_TD,
                            const Weight& w_D,
                            const Tensor& dresidual_TD);
// Drops the state.
void sub_layer_norm_wgrad(const Context&, NormState&, const Tensor& x_TD, const Weight& w_D);
// Drops what the recomputed norm makes again.
void drop_sub_layer_norm(NormState&, ProductEnds&);

// Returns x + the products' output, in the output's memory.
Tensor residual_forward(const Context&, ProductEnds&, const Tensor& x_TD);

}  // namespace weft::model
