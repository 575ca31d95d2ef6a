#include "weft/kernels/checks.h"
#include "weft/kernels/operations.h"

namespace weft::kernels {
namespace {

void check_norm(const Tensor& x, const Tensor& w, const Tensor& rstd) {
  const auto [rows, columns] = matrix_shape("x", x);
  const std::int64_t width = vector_length("w", w);
  CHECK(width > 0 && columns % width == 0, "groups of {} columns of {}", width, columns);
  check_float("x", x);
  check_matrix("rstd", rstd, rows, columns / width);
  check_dtype("rstd", rstd, DType::F32);
  check_contiguous("rstd", rstd);
}

void check_like_rows(std::string_view name, const Tensor& y, const Tensor& x) {
  check_matrix(name, y, x.dim(0), x.dim(1));
  check_dtype(name, y, x.dtype());
}

void check_turned_norm(const Tensor& x, const Tensor& w, const Tensor& rstd, const Tensor& table) {
  check_norm(x, w, rstd);
  const auto [positions, width] = matrix_shape("table", table);
  check_dtype("table", table, DType::F32);
  check_contiguous("table", table);
  CHECK(width == w.dim(0) && width % 2 == 0, "heads of {} turn by {} angles", w.dim(0), width);
  CHECK(positions > 0 || x.dim(0) == 0, "no positions for {} rows", x.dim(0));
}

}  // namespace

void rms_norm_forward(Stream& stream, Tensor y, Tensor rstd, Tensor x, Tensor w, float epsilon) {
  check_norm(x, w, rstd);
  check_dtype("w", w, x.dtype());
  check_like_rows("y", y, x);
  operations_of(stream)
      .rms_norm_forward(stream, std::move(y), std::move(rstd), std::move(x), std::move(w), epsilon);
}

void rms_norm_dgrad(Stream& stream,
                    Tensor dx,
                    Tensor dy,
                    Tensor x,
                    Tensor w,
                    Tensor rstd,
                    Tensor residual) {
  check_norm(x, w, rstd);
  check_dtype("w", w, x.dtype());
  check_like_rows("dx", dx, x);
  check_like_rows("dy", dy, x);
  if (residual.defined()) check_like_rows("residual", residual, x);
  operations_of(stream).rms_norm_dgrad(stream,
                                       std::move(dx),
                                       std::move(dy),
                                       std::move(x),
                                       std::move(w),
                                       std::move(rstd),
                                       std::move(residual));
}

void rms_norm_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Tensor rstd, Write write) {
  check_norm(x, dw, rstd);
  check_dtype("dw", dw, DType::F32);
  check_like_rows("dy", dy, x);
  operations_of(stream)
      .rms_norm_wgrad(stream, std::move(dw), std::move(dy), std::move(x), std::move(rstd), write);
}

void norm_rotary_forward(Stream& stream,
                         Tensor y,
                         Tensor rstd,
                         Tensor x,
                         Tensor w,
                         Tensor table,
                         float epsilon,
                         Rotary::Pairs pairs) {
  check_turned_norm(x, w, rstd, table);
  check_dtype("w", w, x.dtype());
  check_like_rows("y", y, x);
  operations_of(stream).norm_rotary_forward(stream,
                                            std::move(y),
                                            std::move(rstd),
                                            std::move(x),
                                            std::move(w),
                                            std::move(table),
                                            epsilon,
                                            pairs);
}

void norm_rotary_dgrad(Stream& stream,
                       Tensor dx,
                       Tensor dy,
                       Tensor x,
                       Tensor w,
                       Tensor rstd,
                       Tensor table,
                       Rotary::Pairs pairs) {
  check_turned_norm(x, w, rstd, table);
  check_dtype("w", w, x.dtype());
  check_like_rows("dx", dx, x);
  check_like_rows("dy", dy, x);
  operations_of(stream).norm_rotary_dgrad(stream,
                                          std::move(dx),
                                          std::move(dy),
                                          std::move(x),
                                          std::move(w),
                                          std::move(rstd),
                                          std::move(table),
                                          pairs);
}

void norm_rotary_wgrad(Stream& stream,
                       Tensor dw,
                       Tensor dy,
                       Tensor x,
                       Tensor rstd,
                       Tensor table,
                       Rotary::Pairs pairs,
                       Write write) {
  check_turned_norm(x, dw, rstd, table);
  check_dtype("dw", dw, DType::F32);
  check_like_rows("dy", dy, x);
  operations_of(stream).norm_rotary_wgrad(stream,
                                          std::move(dw),
                                          std::move(dy),
                                          std::move(x),
                                          std::move(rstd),
                                          std::move(table),
                                          pairs,
                                          write);
}

}  // namespace weft::kernels
