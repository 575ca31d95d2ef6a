#include "weft/model/weight.h"

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

}  // namespace

void write_gradient(const Context& context, const Weight& w, const WriteGradient& write) {
  if (!w.gradient.defined()) return;
  if (w.gradient.dtype() == DType::F32) return write(w.gradient, context.gradient_write);
  write_through_fp32(context, w.gradient, write);
}

void write_product_gradient(const Context& context, const Weight& w, const WriteGradient& product) {
  const bool is_fused =
      context.gradient_write == Write::Assign || context.config.gradient_accumulation_fusion;
  if (is_fused) return write_gradient(context, w, product);
  if (w.gradient.defined()) write_through_fp32(context, w.gradient, product);
}

}  // namespace weft::model
