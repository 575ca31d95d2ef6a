#include "weft/kernels/cpu/gemm.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

using Rows = std::span<const std::int64_t>;

struct GroupedShape {
  std::int64_t rows = 0, n = 0, k = 0;
};

// Checks rows and weights (E, N, K) against each other; rows of x and y are checked by the caller.
GroupedShape check_weights(std::string_view name, const Tensor& w, Rows rows_E) {
  CHECK(w.shape().rank() == 3, "{} is {}, should be (E, N, K)", name, w.shape().print());
  CHECK(w.dim(0) == static_cast<std::int64_t>(rows_E.size()),
        "{} is {} for {} row counts",
        name,
        w.shape().print(),
        rows_E.size());
  check_float(name, w);
  check_contiguous(name, w);
  std::int64_t rows = 0;
  for (const std::int64_t r : rows_E) {
    CHECK(r >= 0, "{} rows for an expert", r);
    rows += r;
  }
  return {rows, w.dim(1), w.dim(2)};
}

void check_rows(std::string_view name, const Tensor& x, std::int64_t rows, std::int64_t columns) {
  check_matrix(name, x, rows, columns);
  check_float(name, x);
  check_contiguous(name, x);
}

}  // namespace

void grouped_linear_forward(Stream& stream, Tensor y, Tensor x, Tensor w, Rows rows_E) {
  const auto [rows, n, k] = check_weights("w", w, rows_E);
  check_rows("x", x, rows, k);
  check_rows("y", y, rows, n);
  const Operand a = operand(stream, x, Transpose::No);
  const Operand b = operand(stream, w.view({w.dim(0) * n, k}), Transpose::Yes);
  std::byte* c = bytes_of(stream, y);
  std::vector<Gemm> gemms;
  std::int64_t row = 0, expert = 0;
  for (const std::int64_t m : rows_E) {
    gemms.push_back({.m = m,
                     .n = n,
                     .k = k,
                     .a = a.rows_from(row),
                     .b = b.rows_from(expert * n),
                     .c = c + row * n * tensor::size_of(y.dtype()),
                     .c_dtype = y.dtype(),
                     .c_stride = n});
    row += m;
    ++expert;
  }
  enqueue_gemms(stream, "grouped_linear_forward", std::move(gemms), {.rows = rows});
}

void grouped_linear_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor w, Rows rows_E) {
  const auto [rows, n, k] = check_weights("w", w, rows_E);
  check_rows("dy", dy, rows, n);
  check_rows("dx", dx, rows, k);
  const Operand a = operand(stream, dy, Transpose::No);
  const Operand b = operand(stream, w.view({w.dim(0) * n, k}), Transpose::No);
  std::byte* c = bytes_of(stream, dx);
  std::vector<Gemm> gemms;
  std::int64_t row = 0, expert = 0;
  for (const std::int64_t m : rows_E) {
    gemms.push_back({.m = m,
                     .n = k,
                     .k = n,
                     .a = a.rows_from(row),
                     .b = b.rows_from(expert * n),
                     .c = c + row * k * tensor::size_of(dx.dtype()),
                     .c_dtype = dx.dtype(),
                     .c_stride = k});
    row += m;
    ++expert;
  }
  enqueue_gemms(stream, "grouped_linear_dgrad", std::move(gemms), {.rows = rows});
}

void grouped_linear_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Rows rows_E) {
  const auto [rows, n, k] = check_weights("dw", dw, rows_E);
  check_dtype("dw", dw, DType::F32);
  check_rows("dy", dy, rows, n);
  check_rows("x", x, rows, k);
  const Operand a = operand(stream, dy, Transpose::Yes);
  const Operand b = operand(stream, x, Transpose::No);
  std::byte* c = bytes_of(stream, dw);
  std::vector<Gemm> gemms;
  std::int64_t row = 0, expert = 0;
  for (const std::int64_t m : rows_E) {
    gemms.push_back({.m = n,
                     .n = k,
                     .k = m,
                     .a = a.rows_from(row),
                     .b = b.rows_from(row),
                     .c = c + expert * n * k * tensor::size_of(DType::F32),
                     .c_stride = k,
                     .write = Write::Accumulate});
    row += m;
    ++expert;
  }
  enqueue_gemms(stream, "grouped_linear_wgrad", std::move(gemms), {.rows = rows});
}

}  // namespace weft::kernels
