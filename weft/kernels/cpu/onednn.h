// Products by oneDNN, which packs small operands faster than OpenBLAS
// (docs/decisions/0072-products-by-onednn.md).
#pragma once

#include <cstdint>

#include "weft/kernels/cpu/blas.h"

namespace weft::kernels::cpu {

// As sgemm, with m, n, k > 0 and no stride less than its matrix is wide. Where onednn_report() has
// no reason against it.
void onednn_sgemm(std::int64_t m,
                  std::int64_t n,
                  std::int64_t k,
                  float alpha,
                  const Factor& a,
                  const Factor& b,
                  const Product& c);

}  // namespace weft::kernels::cpu
