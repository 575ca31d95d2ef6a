// How kernels take their arguments: checks that name the argument, and plain views of the memory
// that a task may capture by value. A task never captures a Tensor: its memory returns to the pool
// in issue order, before the task has run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/check.h"
#include "weft/tensor/stream.h"
#include "weft/tensor/tensor.h"

namespace weft::kernels::cpu {

using tensor::BFloat16;
using tensor::DType;
using tensor::Stream;
using tensor::Tensor;
using tensor::WorkClass;

// Each throws InternalError with the argument's name, what it is and what it should be.
void check_matrix(std::string_view name, const Tensor& x, std::int64_t rows, std::int64_t columns);
void check_vector(std::string_view name, const Tensor& x, std::int64_t elements);
void check_dtype(std::string_view name, const Tensor& x, DType wanted);
void check_float(std::string_view name, const Tensor& x);  // fp32 or bf16
void check_contiguous(std::string_view name, const Tensor& x);

// The dims of a matrix; throws where `x` is none.
struct MatrixShape {
  std::int64_t rows = 0, columns = 0;
};
MatrixShape matrix_shape(std::string_view name, const Tensor& x);
std::int64_t vector_length(std::string_view name, const Tensor& x);

template <typename T>
struct Matrix {
  T* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;  // elements from one row to the next

  T* row(std::int64_t i) const { return data + i * stride; }
};

template <typename T>
Matrix<T> matrix(Stream& stream, const Tensor& x) {
  return {x.data<T>(stream), x.dim(0), x.dim(1), x.row_stride()};
}

// The memory whatever the dtype, strided or not.
std::byte* bytes_of(Stream& stream, const Tensor& x);

// A type as a value, for the functions below.
template <typename T>
struct As {
  using type = T;
};

// Calls body(As<float>) or body(As<BFloat16>).
template <typename Body>
void with_float(DType dtype, Body&& body) {
  CHECK(dtype == DType::F32 || dtype == DType::BF16, "dtype {}", tensor::name_of(dtype));
  if (dtype == DType::F32) {
    body(As<float>{});
  } else {
    body(As<BFloat16>{});
  }
}

inline float load(float x) { return x; }
inline float load(BFloat16 x) { return static_cast<float>(x); }
inline void store(float& to, float x) { to = x; }
// By its bits: copies of the struct keep g++ from vectorising.
inline void store(BFloat16& to, float x) { to.bits = BFloat16(x).bits; }

}  // namespace weft::kernels::cpu
