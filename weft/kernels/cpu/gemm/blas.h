// Matrix products inside one task, by oneDNN or OpenBLAS (onednn_report.h).
#pragma once

#include <cstdint>

namespace weft::kernels::cpu {

enum class Transpose { No, Yes };

// Row-major matrix in memory; Transpose::Yes: the product takes it transposed.
struct Factor {
  const float* data = nullptr;
  std::int64_t stride = 0;
  Transpose transpose = Transpose::No;
};

struct Product {
  float* data = nullptr;
  std::int64_t stride = 0;
  float beta = 0;  // c = beta c + alpha a b
};

// c (m, n) = beta c + alpha a (m, k) b (k, n), on the calling thread.
void sgemm(std::int64_t m,
           std::int64_t n,
           std::int64_t k,
           float alpha,
           const Factor& a,
           const Factor& b,
           const Product& c);

}  // namespace weft::kernels::cpu
