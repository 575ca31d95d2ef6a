#include "weft/kernels/cpu/blas.h"

#include <cblas.h>

#include <algorithm>
#include <limits>

#include "weft/base/check.h"
#include "weft/kernels/kernels.h"

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

// The BLAS wants a stride of at least the width even where there is one row.
blasint blas_stride(const Factor& f, std::int64_t rows, std::int64_t columns) {
  const std::int64_t width = f.transpose == Transpose::Yes ? rows : columns;
  return blas_int(std::max({f.stride, width, std::int64_t{1}}));
}

}  // namespace

void sgemm(std::int64_t m,
           std::int64_t n,
           std::int64_t k,
           float alpha,
           const Factor& a,
           const Factor& b,
           const Product& c) {
  if (m == 0 || n == 0) return;
  cblas_sgemm(CblasRowMajor,
              blas_transpose(a.transpose),
              blas_transpose(b.transpose),
              blas_int(m),
              blas_int(n),
              blas_int(k),
              alpha,
              a.data,
              blas_stride(a, m, k),
              b.data,
              blas_stride(b, k, n),
              c.beta,
              c.data,
              blas_int(std::max(c.stride, n)));
}

}  // namespace cpu
}  // namespace weft::kernels
