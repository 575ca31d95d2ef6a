// Gradients of GEMM weights, which are most of a model's weights.
//
// Main gradients are fp32 or bf16 (optimizer.main_grads_dtype). A node's contribution to a bf16
// gradient is computed in fp32, in temporary memory, and rounded once with the sum.
#pragma once

#include <functional>

#include "weft/model/context.h"

namespace weft::model {

// Calls `write` with the fp32 destination and the mode of writing.
using WriteGradient = std::function<void(const Tensor& dw, kernels::Write how)>;
void write_gradient(const Context&, const Tensor& dw, const WriteGradient& write);

// dw = dy^T x, or += after the step's first (context.gradient_write). The addition happens inside
// the GEMM or, with model.gradient_accumulation_fusion off, in a separate sum.
void weight_gradient(const Context&, const Tensor& dw_NK, const Tensor& dy_TN, const Tensor& x_TK);
// Weight gradient of experts, whose rows are concatenated.
void expert_weight_gradient(const Context&,
                            const Tensor& dw_ENK,
                            const Tensor& dy_RN,
                            const Tensor& x_RK,
                            const Tensor& rows_E);

}  // namespace weft::model
