#include "weft/kernels/checks.h"
#include "weft/kernels/operations.h"

namespace weft::kernels {
namespace {

void check_halves(const Tensor& y, const Tensor& h) {
  const auto [rows, width] = matrix_shape("y", y);
  check_float("y", y);
  check_matrix("h", h, rows, 2 * width);
  check_dtype("h", h, y.dtype());
}

void check_row_weights(std::string_view name, const Tensor& p, std::int64_t rows) {
  check_vector(name, p, rows);
  check_dtype(name, p, DType::F32);
}

void check_gate(const Tensor& y, const Tensor& x, const Tensor& g) {
  const auto [rows, width] = matrix_shape("y", y);
  check_float("y", y);
  check_matrix("x", x, rows, width);
  check_dtype("x", x, y.dtype());
  check_row_weights("g", g, rows);
}

}  // namespace

void swiglu_forward(Stream& stream, Tensor y, Tensor h) {
  check_halves(y, h);
  operations_of(stream).swiglu_forward(stream, std::move(y), std::move(h));
}

void swiglu_dgrad(Stream& stream, Tensor dh, Tensor dy, Tensor h) {
  check_halves(dy, h);
  check_halves(dy, dh);
  operations_of(stream).swiglu_dgrad(stream, std::move(dh), std::move(dy), std::move(h));
}

void weighted_swiglu_forward(Stream& stream, Tensor y, Tensor h, Tensor p) {
  check_halves(y, h);
  check_row_weights("p", p, y.dim(0));
  operations_of(stream).weighted_swiglu_forward(stream, std::move(y), std::move(h), std::move(p));
}

void weighted_swiglu_dgrad(Stream& stream, Tensor dh, Tensor dp, Tensor dy, Tensor h, Tensor p) {
  check_halves(dy, h);
  check_halves(dy, dh);
  check_row_weights("p", p, dy.dim(0));
  check_row_weights("dp", dp, dy.dim(0));
  operations_of(stream).weighted_swiglu_dgrad(stream,
                                              std::move(dh),
                                              std::move(dp),
                                              std::move(dy),
                                              std::move(h),
                                              std::move(p));
}

void gate_forward(Stream& stream, Tensor y, Tensor x, Tensor g) {
  check_gate(y, x, g);
  operations_of(stream).gate_forward(stream, std::move(y), std::move(x), std::move(g));
}

void gate_dgrad(Stream& stream, Tensor dx, Tensor dg, Tensor dy, Tensor x, Tensor g) {
  check_gate(dy, x, g);
  check_gate(dy, dx, dg);
  operations_of(stream)
      .gate_dgrad(stream, std::move(dx), std::move(dg), std::move(dy), std::move(x), std::move(g));
}

}  // namespace weft::kernels
