// Matrix product of linear and grouped linear, for any kernel: cuBLASLt (blas.h) or our own
// (tiled_product.h). Host code only, so that plain C++ may include it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/kernels/kernels.h"
#include "weft/tensor/dtype.h"

namespace weft::kernels::cuda {

using tensor::DType;

// Index of a factor, as it lies in memory, that the product sums over.
enum class SumOver { Columns, Rows };

// Row-major matrix, fp32 or bf16; `stride` elements from one row to the next.
struct Factor {
  const std::byte* data = nullptr;
  DType dtype = DType::F32;
  std::int64_t stride = 0;
  SumOver sum_over = SumOver::Columns;
};

// c (m, n): c[i, j] is the sum over the k elements d of a[i, d] b[j, d], or is increased by it. So
// x w^T sums over the columns of both. Sums are fp32. A bf16 result is rounded once and is never
// accumulated into.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  Factor a, b;
  std::byte* c = nullptr;
  DType c_dtype = DType::F32;
  std::int64_t c_stride = 0;
  Write write = Write::Assign;

  bool is_nothing() const { return m == 0 || n == 0 || (k == 0 && write == Write::Accumulate); }
};

}  // namespace weft::kernels::cuda
