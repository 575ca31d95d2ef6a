// Argument checks that hold on every device: shapes and dtypes, by name. Each check throws
// InternalError with the argument's name, its value and the value wanted.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/base/check.h"
#include "weft/tensor/tensor.h"

namespace weft::kernels {

using tensor::DType;
using tensor::Tensor;

void check_matrix(std::string_view name, const Tensor& x, std::int64_t rows, std::int64_t columns);
void check_vector(std::string_view name, const Tensor& x, std::int64_t elements);
void check_dtype(std::string_view name, const Tensor& x, DType wanted);
void check_float(std::string_view name, const Tensor& x);  // fp32 or bf16
void check_contiguous(std::string_view name, const Tensor& x);

// Rows and columns of a matrix; throws if `x` is not one.
struct MatrixShape {
  std::int64_t rows = 0, columns = 0;
};
MatrixShape matrix_shape(std::string_view name, const Tensor& x);
std::int64_t vector_length(std::string_view name, const Tensor& x);

}  // namespace weft::kernels
