// Products by oneDNN, which packs small operands faster than OpenBLAS
// (docs/decisions/0072-products-by-onednn.md).
#pragma once

#include <cstdint>

#include "weft/kernels/cpu/gemm/blas.h"

namespace weft::kernels::cpu {

// sgemm with m, n, k > 0 and strides at least the matrix's width. Callable if
// onednn_report().why_not is empty.
void onednn_sgemm(std::int64_t m,
                  std::int64_t n,
                  std::int64_t k,
                  float alpha,
                  const Factor& a,
                  const Factor& b,
                  const Product& c);

}  // namespace weft::kernels::cpu
