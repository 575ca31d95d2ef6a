#include "weft/kernels/checks.h"
#include "weft/kernels/operations.h"

namespace weft::kernels {
namespace {

void check_matrix_like(std::string_view name, const Tensor& y, const Tensor& x) {
  check_matrix(name, y, x.dim(0), x.dim(1));
  check_dtype(name, y, x.dtype());
}

void check_sums(std::string_view name, const Tensor& sums, std::int64_t rows) {
  check_vector(name, sums, rows);
  check_dtype(name, sums, DType::F32);
}

void check_weights(const Tensor& w, const Tensor& x) {
  check_vector("w", w, x.dim(1));
  check_dtype("w", w, x.dtype());
}

void check_norm(const Tensor& x, const Tensor& w, const Tensor& rstd, const SharedNorm& norm) {
  const auto [rows, columns] = matrix_shape("x", x);
  check_float("x", x);
  check_weights(w, x);
  check_matrix("rstd", rstd, rows, 1);
  check_dtype("rstd", rstd, DType::F32);
  check_contiguous("rstd", rstd);
  CHECK(norm.width >= columns, "a norm over {} columns, {} of them here", norm.width, columns);
}

}  // namespace

void row_dots(Stream& stream, Tensor dots, Tensor a, Tensor b, Tensor w) {
  const auto [rows, columns] = matrix_shape("a", a);
  check_float("a", a);
  check_matrix_like("b", b, a);
  if (w.defined()) check_weights(w, a);
  check_sums("dots", dots, rows);
  operations_of(stream).row_dots(stream, std::move(dots), std::move(a), std::move(b), std::move(w));
}

void shared_norm_forward(Stream& stream,
                         Tensor y,
                         Tensor rstd,
                         Tensor x,
                         Tensor w,
                         Tensor squares,
                         const SharedNorm& norm) {
  check_norm(x, w, rstd, norm);
  check_matrix_like("y", y, x);
  check_sums("squares", squares, x.dim(0));
  operations_of(stream).shared_norm_forward(stream,
                                            std::move(y),
                                            std::move(rstd),
                                            std::move(x),
                                            std::move(w),
                                            std::move(squares),
                                            norm);
}

void shared_norm_dgrad(Stream& stream,
                       Tensor dx,
                       Tensor dy,
                       Tensor x,
                       Tensor w,
                       Tensor rstd,
                       Tensor dots,
                       const SharedNorm& norm) {
  check_norm(x, w, rstd, norm);
  check_matrix_like("dx", dx, x);
  check_matrix_like("dy", dy, x);
  check_sums("dots", dots, x.dim(0));
  operations_of(stream).shared_norm_dgrad(stream,
                                          std::move(dx),
                                          std::move(dy),
                                          std::move(x),
                                          std::move(w),
                                          std::move(rstd),
                                          std::move(dots),
                                          norm);
}

}  // namespace weft::kernels
