#include "weft/kernels/cpu/gemm/blas.h"

#include <cblas.h>

#include <algorithm>
#include <limits>

#include "weft/base/check.h"
#include "weft/kernels/cpu/onednn.h"
#include "weft/kernels/kernels.h"
#include "weft/kernels/onednn_report.h"

namespace weft::kernels {

void prepare_process() { openblas_set_num_threads(1); }

namespace cpu {
namespace {

blasint blas_int(std::int64_t x) {
  CHECK(x >= 0 && x <= std::numeric_limits<blasint>::max(), "{} is too large for the BLAS", x);
  return static_cast<blasint>(x);
}

CBLAS_TRANSPOSE blas_transpose(Transpose t) {
  return t == Transpose::Yes ? CblasTrans : CblasNoTrans;
}

void openblas_sgemm(std::int64_t m,
                    std::int64_t n,
                    std::int64_t k,
                    float alpha,
                    const Factor& a,
                    const Factor& b,
                    const Product& c) {
  cblas_sgemm(CblasRowMajor,
              blas_transpose(a.transpose),
              blas_transpose(b.transpose),
              blas_int(m),
              blas_int(n),
              blas_int(k),
              alpha,
              a.data,
              blas_int(a.stride),
              b.data,
              blas_int(b.stride),
              c.beta,
              c.data,
              blas_int(c.stride));
}

// The libraries want a stride of at least the width, even for one row.
Factor with_full_stride(Factor f, std::int64_t rows, std::int64_t columns) {
  f.stride = std::max(f.stride, f.transpose == Transpose::Yes ? rows : columns);
  return f;
}

// Product with k = 0: c = beta c; oneDNN would leave c as it is.
void scale(std::int64_t m, std::int64_t n, const Product& c) {
  for (std::int64_t i = 0; i < m; ++i) {
    float* row = c.data + i * c.stride;
    for (std::int64_t j = 0; j < n; ++j) row[j] = c.beta == 0 ? 0 : c.beta * row[j];
  }
}

}  // namespace

void sgemm(std::int64_t m,
           std::int64_t n,
           std::int64_t k,
           float alpha,
           const Factor& a,
           const Factor& b,
           const Product& c) {
  static const bool by_onednn = onednn_report().why_not.empty();
  if (m == 0 || n == 0) return;
  if (k == 0) return scale(m, n, c);
  const auto product = by_onednn ? onednn_sgemm : openblas_sgemm;
  product(m,
          n,
          k,
          alpha,
          with_full_stride(a, m, k),
          with_full_stride(b, k, n),
          {c.data, std::max(c.stride, n), c.beta});
}

}  // namespace cpu
}  // namespace weft::kernels
