// The gradients of weights that multiply, which most of a model's are.
#pragma once

#include "weft/model/context.h"

namespace weft::model {

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
