// Matrix products cut into output tiles; linear and grouped linear use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/blas.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/stream.h"

namespace weft::kernels::cpu {

// Operand in memory, fp32 or bf16.
struct Operand {
  const std::byte* data = nullptr;
  DType dtype = DType::F32;
  std::int64_t stride = 0;
  Transpose transpose = Transpose::No;

  Operand rows_from(std::int64_t row) const;
};

// c (m, n) = a (m, k) b (k, n), or +=. The sum over k is fp32. A bf16 result is rounded once and
// never accumulated into.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  Operand a, b;
  std::byte* c = nullptr;
  DType c_dtype = DType::F32;
  std::int64_t c_stride = 0;
  Write write = Write::Assign;
};

Operand operand(Stream& stream, const Tensor& matrix, Transpose transpose);

// Enqueues all products as one task; each is cut into tiles by its own shape.
void enqueue_gemms(Stream& stream,
                   std::string_view name,
                   std::vector<Gemm> gemms,
                   tensor::WorkSize size = {});

// Runs the products inside a running task.
void run_gemms(Workers& workers, const std::vector<Gemm>& gemms);

}  // namespace weft::kernels::cpu
