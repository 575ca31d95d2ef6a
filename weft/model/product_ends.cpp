#include "weft/model/product_ends.h"

#include <utility>

namespace weft::model {

void ProductEnds::drop_input() {
  x_TD.reset();
  own_x_TD.reset();
}

void sub_layer_norm_forward(const Context& context,
                            NormState& state,
                            ProductEnds& ends,
                            const Tensor& x_TD,
                            const Tensor& w_D) {
  norm_forward(context, state, x_TD, w_D);
  ends.take_input(state.y_TD);
}

Tensor sub_layer_norm_dgrad(const Context& context,
                            NormState& state,
                            ProductEnds& ends,
                            const Tensor& x_TD,
                            const Tensor& w_D,
                            const Tensor& dresidual_TD) {
  state.dy_TD = std::move(ends.dx_TD);
  return norm_dgrad(context, state, x_TD, w_D, dresidual_TD);
}

void sub_layer_norm_wgrad(const Context& context,
                          NormState& state,
                          const Tensor& x_TD,
                          const Tensor& dw_D) {
  norm_wgrad(context, state, x_TD, dw_D);
  state = {};
}

void drop_sub_layer_norm(NormState& state, ProductEnds& ends) {
  state = {};
  // What was gathered of it is not the norm's to drop.
  if (ends.x_TD.defined() && ends.x_TD.shares_block(ends.own_x_TD)) ends.x_TD.reset();
  ends.own_x_TD.reset();
}

Tensor residual_forward(const Context& context, ProductEnds& ends, const Tensor& x_TD) {
  Tensor sum_TD = std::move(ends.y_TD);
  kernels::add(context.stream, sum_TD, sum_TD, x_TD);
  return sum_TD;
}

}  // namespace weft::model
