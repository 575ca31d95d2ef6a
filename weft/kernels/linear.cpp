#include "weft/kernels/checks.h"
#include "weft/kernels/operations.h"

namespace weft::kernels {
namespace {

void check_product(const Tensor& y, std::int64_t rows, std::int64_t columns) {
  check_matrix("the result", y, rows, columns);
  check_float("the result", y);
}

// Returns (N, K) of the experts' weights.
MatrixShape check_expert_weights(std::string_view name, const Tensor& w, const Tensor& rows_E) {
  CHECK(w.shape().rank() == 3, "{} is {}, should be (E, N, K)", name, w.shape().print());
  check_vector("rows", rows_E, w.dim(0));
  check_dtype("rows", rows_E, DType::I64);
  check_float(name, w);
  check_contiguous(name, w);
  return {w.dim(1), w.dim(2)};
}

void check_expert_rows(std::string_view name,
                       const Tensor& x,
                       std::int64_t rows,
                       std::int64_t columns) {
  check_matrix(name, x, rows, columns);
  check_float(name, x);
  check_contiguous(name, x);
}

}  // namespace

void linear_forward(Stream& stream, Tensor y, Tensor x, Tensor w) {
  const auto [tokens, k] = matrix_shape("x", x);
  const std::int64_t n = matrix_shape("w", w).rows;
  check_matrix("w", w, n, k);
  check_float("x", x);
  check_float("w", w);
  check_product(y, tokens, n);
  operations_of(stream).linear_forward(stream, std::move(y), std::move(x), std::move(w));
}

void linear_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor w) {
  const auto [tokens, n] = matrix_shape("dy", dy);
  const std::int64_t k = matrix_shape("w", w).columns;
  check_matrix("w", w, n, k);
  check_float("dy", dy);
  check_float("w", w);
  check_product(dx, tokens, k);
  operations_of(stream).linear_dgrad(stream, std::move(dx), std::move(dy), std::move(w));
}

void linear_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Write write) {
  const auto [tokens, n] = matrix_shape("dy", dy);
  const std::int64_t k = matrix_shape("x", x).columns;
  check_matrix("x", x, tokens, k);
  check_float("dy", dy);
  check_float("x", x);
  check_dtype("dw", dw, DType::F32);
  check_product(dw, n, k);
  operations_of(stream).linear_wgrad(stream, std::move(dw), std::move(dy), std::move(x), write);
}

void grouped_linear_forward(Stream& stream, Tensor y, Tensor x, Tensor w, Tensor rows) {
  const auto [n, k] = check_expert_weights("w", w, rows);
  const std::int64_t room = matrix_shape("x", x).rows;
  check_expert_rows("x", x, room, k);
  check_expert_rows("y", y, room, n);
  operations_of(stream).grouped_linear_forward(stream,
                                               std::move(y),
                                               std::move(x),
                                               std::move(w),
                                               std::move(rows));
}

void grouped_linear_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor w, Tensor rows) {
  const auto [n, k] = check_expert_weights("w", w, rows);
  const std::int64_t room = matrix_shape("dy", dy).rows;
  check_expert_rows("dy", dy, room, n);
  check_expert_rows("dx", dx, room, k);
  operations_of(stream).grouped_linear_dgrad(stream,
                                             std::move(dx),
                                             std::move(dy),
                                             std::move(w),
                                             std::move(rows));
}

void grouped_linear_wgrad(Stream& stream,
                          Tensor dw,
                          Tensor dy,
                          Tensor x,
                          Tensor rows,
                          Write write) {
  const auto [n, k] = check_expert_weights("dw", dw, rows);
  const std::int64_t room = matrix_shape("dy", dy).rows;
  check_dtype("dw", dw, DType::F32);
  check_expert_rows("dy", dy, room, n);
  check_expert_rows("x", x, room, k);
  operations_of(stream).grouped_linear_wgrad(stream,
                                             std::move(dw),
                                             std::move(dy),
                                             std::move(x),
                                             std::move(rows),
                                             write);
}

}  // namespace weft::kernels
