// A product of the model: y = x w^T, with its input gradient dx = dy w and its weight gradient
// dw = dy^T x. Experts share one product: an operand's rows are sorted by expert, and w has a
// matrix for each. Every product is called here, so that a number format or an addition beside a
// weight changes this file alone.
//
// Suffixes: T rows, N columns of y, K columns of x, E experts.
#pragma once

#include <utility>

#include "weft/model/weight.h"

namespace weft::model {

struct Operand {
  Operand(Tensor x, Tensor rows = {}) : values(std::move(x)), rows_E(std::move(rows)) {}

  Tensor values;
  Tensor rows_E;  // rows of each expert; undefined: all rows meet one matrix
};

struct ProductFormats {
  DType input = DType::F32;   // x and dx
  DType result = DType::F32;  // y
};

struct Product {
  Weight weight;  // (N, K) or (E, N, K)
  ProductFormats formats = {};

  bool defined() const { return weight.defined(); }
  std::int64_t n() const { return weight.values.dim(weight.values.shape().rank() - 2); }
  std::int64_t k() const { return weight.values.dim(weight.values.shape().rank() - 1); }
};

// Into y_TN, or into memory of its own.
void product_forward(const Context&, const Tensor& y_TN, Operand x_TK, const Product& w);
Tensor product_forward(const Context&, Operand x_TK, const Product& w, Tag = Tag::Activations);

// Into dx_TK, or into memory of its own.
void product_dgrad(const Context&, const Tensor& dx_TK, Operand dy_TN, const Product& w);
Tensor product_dgrad(const Context&, Operand dy_TN, const Product& w, Tag = Tag::Activations);

// Into w's gradient. x has the rows of dy.
void product_wgrad(const Context&, const Product& w, const Operand& dy_TN, const Tensor& x_TK);

}  // namespace weft::model
