#include "weft/model/weight_gradient.h"

namespace weft::model {
namespace {

using kernels::Write;

// Calls product(dw, write).
template <typename Product>
void write_gradient(const Context& context, const Tensor& dw, const Product& product) {
  const Write write = context.gradient_write;
  if (write == Write::Assign || context.config.gradient_accumulation_fusion) {
    return product(dw, write);
  }
  const Tensor added(context.pool, DType::F32, dw.shape(), Tag::Workspace);
  product(added, Write::Assign);
  kernels::accumulate(context.stream, dw, added);
}

}  // namespace

void weight_gradient(const Context& context,
                     const Tensor& dw_NK,
                     const Tensor& dy_TN,
                     const Tensor& x_TK) {
  write_gradient(context, dw_NK, [&](const Tensor& dw, Write write) {
    kernels::linear_wgrad(context.stream, dw, dy_TN, x_TK, write);
  });
}

void expert_weight_gradient(const Context& context,
                            const Tensor& dw_ENK,
                            const Tensor& dy_RN,
                            const Tensor& x_RK,
                            const Tensor& rows_E) {
  write_gradient(context, dw_ENK, [&](const Tensor& dw, Write write) {
    kernels::grouped_linear_wgrad(context.stream, dw, dy_RN, x_RK, rows_E, write);
  });
}

}  // namespace weft::model
