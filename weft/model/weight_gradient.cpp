#include "weft/model/weight_gradient.h"

namespace weft::model {
namespace {

using kernels::Write;

void write_through_fp32(const Context& context, const Tensor& dw, const WriteGradient& write) {
  const Tensor added(context.pool, DType::F32, dw.shape(), Tag::Workspace);
  write(added, Write::Assign);
  if (context.gradient_write == Write::Assign) {
    kernels::copy(context.stream, dw, added);
  } else {
    kernels::accumulate(context.stream, dw, added);
  }
}

// A GEMM adds to its destination, unless model.gradient_accumulation_fusion is off.
void write_product(const Context& context, const Tensor& dw, const WriteGradient& product) {
  const bool is_fused =
      context.gradient_write == Write::Assign || context.config.gradient_accumulation_fusion;
  if (is_fused) return write_gradient(context, dw, product);
  write_through_fp32(context, dw, product);
}

}  // namespace

void write_gradient(const Context& context, const Tensor& dw, const WriteGradient& write) {
  if (dw.dtype() == DType::F32) return write(dw, context.gradient_write);
  write_through_fp32(context, dw, write);
}

void weight_gradient(const Context& context,
                     const Tensor& dw_NK,
                     const Tensor& dy_TN,
                     const Tensor& x_TK) {
  write_product(context, dw_NK, [&](const Tensor& dw, Write how) {
    kernels::linear_wgrad(context.stream, dw, dy_TN, x_TK, how);
  });
}

void expert_weight_gradient(const Context& context,
                            const Tensor& dw_ENK,
                            const Tensor& dy_RN,
                            const Tensor& x_RK,
                            const Tensor& rows_E) {
  write_product(context, dw_ENK, [&](const Tensor& dw, Write how) {
    kernels::grouped_linear_wgrad(context.stream, dw, dy_RN, x_RK, rows_E, how);
  });
}

}  // namespace weft::model
