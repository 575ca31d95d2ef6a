// A weight and its gradient.
//
// Main gradients are fp32 or bf16 (optimizer.main_grads_dtype). Additions to a bf16 gradient are
// computed in fp32, in workspace of the node, and rounded once with the sum.
#pragma once

#include <functional>

#include "weft/model/context.h"

namespace weft::model {

struct Weight {
  Tensor values;
  Tensor gradient;  // undefined: not trained

  bool defined() const { return values.defined(); }
};

// Writes a gradient to `to`, in fp32.
using WriteGradient = std::function<void(const Tensor& to, kernels::Write how)>;

// Assigns the gradient first in a step, then accumulates (context.gradient_write). Without effect
// if the weight is not trained.
void write_gradient(const Context&, const Weight&, const WriteGradient& write);

// The same for a product, which accumulates itself only with model.gradient_accumulation_fusion.
void write_product_gradient(const Context&, const Weight&, const WriteGradient& product);

}  // namespace weft::model
