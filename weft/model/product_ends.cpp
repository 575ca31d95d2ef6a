#include "weft/model/product_ends.h"

#include <utility>

namespace weft::model {
namespace {

bool is_own_step(const Context& context) { return context.step && context.step->is_own; }

// Destination of a product's rows: own tokens go to the parts to be summed, others are sent to
// their rank.
Tensor rows_made(const Context& context, const Tensor& all_TD, Tensor& parts_TD) {
  if (!is_own_step(context)) return context.of_step(all_TD);
  if (!parts_TD.defined()) parts_TD = context.wire(all_TD.shape());
  return context.of_step(parts_TD);
}

Tensor sum_of(const Context& context,
              Tensor& parts_TD,
              tensor::Reuse memory,
              const Tensor& residual_TD = {}) {
  Tensor sum_TD(context.pool,
                parts_TD.dtype(),
                {context.part_rows_TP.dim(0), parts_TD.dim(1)},
                Tag::Activations,
                memory);
  kernels::sum_rows(context.stream, sum_TD, parts_TD, context.part_rows_TP, residual_TD);
  parts_TD.reset();
  return sum_TD;
}

// Rows between the first and the last product.
std::int64_t rows_between(const Context& context, const Tensor& end_TD) {
  return context.step ? context.step->all() : end_TD.dim(0);
}

// y = x w^T in context.product_parts.
void forward_in_parts(const Context& context,
                      const Tensor& y_TN,
                      const Tensor& x_TK,
                      const Product& w) {
  const std::int64_t rows = y_TN.dim(0) / context.product_parts;
  for (std::int64_t part = 0; part < context.product_parts; ++part) {
    product_forward(context, y_TN.rows(part * rows, rows), x_TK.rows(part * rows, rows), w);
  }
}

}  // namespace

void first_product_forward(const Context& context,
                           Tensor& y_TN,
                           const ProductEnds& ends,
                           const Product& w) {
  if (context.opens()) {
    y_TN = context.activation(w.formats.result, {rows_between(context, ends.x_TD), w.n()});
  }
  const Tensor x_TK = is_own_step(context) ? ends.own_x_TD : context.of_step(ends.x_TD);
  forward_in_parts(context, context.of_step(y_TN), x_TK, w);
}

void last_product_forward(const Context& context,
                          ProductEnds& ends,
                          const Tensor& x_TK,
                          const Product& w,
                          tensor::Reuse memory) {
  if (context.opens()) {
    ends.y_TD = context.activation(w.formats.result, {x_TK.dim(0), w.n()}, memory);
  }
  const Tensor y_TN = rows_made(context, ends.y_TD, ends.y_parts_TD);
  forward_in_parts(context, y_TN, context.of_step(x_TK), w);
}

void last_product_dgrad(const Context& context,
                        Tensor& dx_TK,
                        const ProductEnds& ends,
                        const Product& w) {
  if (context.opens()) {
    dx_TK = context.activation(w.formats.input, {rows_between(context, ends.dy_TD), w.k()});
  }
  const Tensor& own_dy_TD = ends.own_dy_TD.defined() ? ends.own_dy_TD : ends.dy_TD;
  const Tensor dy_TN = is_own_step(context) ? own_dy_TD : context.of_step(ends.dy_TD);
  product_dgrad(context, context.of_step(dx_TK), dy_TN, w);
}

void first_product_dgrad(const Context& context,
                         ProductEnds& ends,
                         const Tensor& dy_TN,
                         const Product& w) {
  if (context.opens()) ends.dx_TD = context.activation(w.formats.input, {dy_TN.dim(0), w.k()});
  const Tensor dx_TK = rows_made(context, ends.dx_TD, ends.dx_parts_TD);
  product_dgrad(context, dx_TK, context.of_step(dy_TN), w);
}

Tensor take_whole_gradient(const Context& context, ProductEnds& ends) {
  if (ends.own_dy_TD.defined()) {
    const std::int64_t rows = ends.own_dy_TD.dim(0);
    const kernels::RowBlock own{.from = 0, .to = context.share.tp_rank * rows, .rows = rows};
    kernels::copy_rows(context.stream, ends.dy_TD, ends.own_dy_TD, {&own, 1});
    ends.own_dy_TD.reset();
  }
  return std::move(ends.dy_TD);
}

void settle_output(const Context& context, ProductEnds& ends, tensor::Reuse memory) {
  if (ends.y_parts_TD.defined()) ends.y_TD = sum_of(context, ends.y_parts_TD, memory);
}

void settle_input_gradient(const Context& context, ProductEnds& ends) {
  if (!ends.dx_parts_TD.defined()) return;
  ends.dx_TD = sum_of(context, ends.dx_parts_TD, tensor::Reuse::InOrder);
}

void ProductEnds::drop_input() {
  x_TD.reset();
  own_x_TD.reset();
}

void ProductEnds::drop_own_input() {
  if (x_TD.defined() && x_TD.shares_block(own_x_TD)) x_TD.reset();
  own_x_TD.reset();
}

void sub_layer_norm_forward(const Context& context,
                            NormState& state,
                            ProductEnds& ends,
                            const Tensor& x_TD,
                            const Weight& w_D) {
  norm_forward(context, state, x_TD, w_D);
  ends.take_input(state.y_TD);
}

Tensor sub_layer_norm_dgrad(const Context& context,
                            NormState& state,
                            ProductEnds& ends,
                            const Tensor& x_TD,
                            const Weight& w_D,
                            const Tensor& dresidual_TD) {
  settle_input_gradient(context, ends);
  state.dy_TD = std::move(ends.dx_TD);
  return norm_dgrad(context, state, x_TD, w_D, dresidual_TD);
}

void sub_layer_norm_wgrad(const Context& context,
                          NormState& state,
                          const Tensor& x_TD,
                          const Weight& w_D) {
  norm_wgrad(context, state, x_TD, w_D);
  state = {};
}

void drop_sub_layer_norm(NormState& state, ProductEnds& ends) {
  state = {};
  ends.drop_own_input();
}

Tensor residual_forward(const Context& context, ProductEnds& ends, const Tensor& x_TD) {
  // One pass if bits are equal; a narrower type rounds in between.
  if (ends.y_parts_TD.defined() && x_TD.dtype() == tensor::DType::F32) {
    ends.y_TD = sum_of(context, ends.y_parts_TD, context.output_memory, x_TD);
    return std::move(ends.y_TD);
  }
  settle_output(context, ends, context.output_memory);
  Tensor sum_TD = std::move(ends.y_TD);
  kernels::add(context.stream, sum_TD, sum_TD, x_TD);
  return sum_TD;
}

}  // namespace weft::model
