// The gradients of weights, those that multiply first: most of a model's do.
//
// Main gradients are fp32 or bf16 (optimizer.main_grads_dtype). What a node adds to one in bf16 is
// computed in fp32, in memory that it gives back at its end, and rounded once with the sum.
#pragma once

#include <functional>

#include "weft/model/context.h"

namespace weft::model {

// Has the gradient of a weight written: `write` gets where to, in fp32, and how.
using WriteGradient = std::function<void(const Tensor& dw, kernels::Write how)>;
void write_gradient(const Context&, const Tensor& dw, const WriteGradient& write);

// dw = dy^T x, or += after the step's first (context.gradient_write): inside the product, or, with
// model.gradient_accumulation_fusion off, by a sum of its own.
void weight_gradient(const Context&, const Tensor& dw_NK, const Tensor& dy_TN, const Tensor& x_TK);
// The same of the weights of experts, whose rows lie behind each other.
void expert_weight_gradient(const Context&,
                            const Tensor& dw_ENK,
                            const Tensor& dy_RN,
                            const Tensor& x_RK,
                            const Tensor& rows_E);

}  // namespace weft::model
