#include "weft/model/product.h"

#include <utility>

namespace weft::model {

void product_forward(const Context& context, const Tensor& y_TN, Operand x_TK, const Product& w) {
  Tensor x = std::move(x_TK.values), rows_E = std::move(x_TK.rows_E);
  if (rows_E.defined()) {
    kernels::grouped_linear_forward(context.stream,
                                    y_TN,
                                    std::move(x),
                                    w.weight.values,
                                    std::move(rows_E));
  } else {
    kernels::linear_forward(context.stream, y_TN, std::move(x), w.weight.values);
  }
}

Tensor product_forward(const Context& context, Operand x_TK, const Product& w, Tag tag) {
  Tensor y_TN(context.pool, w.formats.result, {x_TK.values.dim(0), w.n()}, tag);
  product_forward(context, y_TN, std::move(x_TK), w);
  return y_TN;
}

void product_dgrad(const Context& context, const Tensor& dx_TK, Operand dy_TN, const Product& w) {
  Tensor dy = std::move(dy_TN.values), rows_E = std::move(dy_TN.rows_E);
  if (rows_E.defined()) {
    kernels::grouped_linear_dgrad(context.stream,
                                  dx_TK,
                                  std::move(dy),
                                  w.weight.values,
                                  std::move(rows_E));
  } else {
    kernels::linear_dgrad(context.stream, dx_TK, std::move(dy), w.weight.values);
  }
}

Tensor product_dgrad(const Context& context, Operand dy_TN, const Product& w, Tag tag) {
  Tensor dx_TK(context.pool, w.formats.input, {dy_TN.values.dim(0), w.k()}, tag);
  product_dgrad(context, dx_TK, std::move(dy_TN), w);
  return dx_TK;
}

void product_wgrad(const Context& context,
                   const Product& w,
                   const Operand& dy_TN,
                   const Tensor& x_TK) {
  const auto& [dy, rows_E] = dy_TN;
  write_product_gradient(context, w.weight, [&](const Tensor& dw, kernels::Write how) {
    if (rows_E.defined()) {
      kernels::grouped_linear_wgrad(context.stream, dw, dy, x_TK, rows_E, how);
    } else {
      kernels::linear_wgrad(context.stream, dw, dy, x_TK, how);
    }
  });
}

}  // namespace weft::model
