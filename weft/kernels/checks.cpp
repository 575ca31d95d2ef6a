#include "weft/kernels/checks.h"

namespace weft::kernels {

void check_matrix(std::string_view name, const Tensor& x, std::int64_t rows, std::int64_t columns) {
  const auto [r, c] = matrix_shape(name, x);
  CHECK(r == rows && c == columns,
        "{} is {}, should be ({}, {})",
        name,
        x.shape().print(),
        rows,
        columns);
}

void check_vector(std::string_view name, const Tensor& x, std::int64_t elements) {
  CHECK(vector_length(name, x) == elements,
        "{} is {}, should be ({})",
        name,
        x.shape().print(),
        elements);
}

void check_dtype(std::string_view name, const Tensor& x, DType wanted) {
  CHECK(x.dtype() == wanted,
        "{} is {}, should be {}",
        name,
        tensor::name_of(x.dtype()),
        tensor::name_of(wanted));
}

void check_float(std::string_view name, const Tensor& x) {
  CHECK(x.dtype() == DType::F32 || x.dtype() == DType::BF16,
        "{} is {}, should be fp32 or bf16",
        name,
        tensor::name_of(x.dtype()));
}

void check_contiguous(std::string_view name, const Tensor& x) {
  CHECK(x.contiguous(), "{} {} has strided rows", name, x.shape().print());
}

MatrixShape matrix_shape(std::string_view name, const Tensor& x) {
  CHECK(x.shape().rank() == 2, "{} is {}, should be a matrix", name, x.shape().print());
  return {x.dim(0), x.dim(1)};
}

std::int64_t vector_length(std::string_view name, const Tensor& x) {
  CHECK(x.shape().rank() == 1, "{} is {}, should be a vector", name, x.shape().print());
  return x.dim(0);
}

}  // namespace weft::kernels
