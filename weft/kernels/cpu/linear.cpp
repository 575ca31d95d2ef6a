#include "weft/kernels/cpu/gemm.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

void enqueue(Stream& stream,
             std::string_view name,
             const MatrixShape& c_shape,
             std::int64_t k,
             const Operand& a,
             const Operand& b,
             const Tensor& c,
             Write write) {
  check_matrix("the result", c, c_shape.rows, c_shape.columns);
  check_float("the result", c);
  enqueue_gemms(stream,
                name,
                {{.m = c_shape.rows,
                  .n = c_shape.columns,
                  .k = k,
                  .a = a,
                  .b = b,
                  .c = bytes_of(stream, c),
                  .c_dtype = c.dtype(),
                  .c_stride = c.row_stride(),
                  .write = write}});
}

}  // namespace

void linear_forward(Stream& stream, Tensor y, Tensor x, Tensor w) {
  const auto [tokens, k] = matrix_shape("x", x);
  const std::int64_t n = matrix_shape("w", w).rows;
  check_matrix("w", w, n, k);
  check_float("x", x);
  check_float("w", w);
  enqueue(stream,
          "linear_forward",
          {tokens, n},
          k,
          operand(stream, x, Transpose::No),
          operand(stream, w, Transpose::Yes),
          y,
          Write::Assign);
}

void linear_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor w) {
  const auto [tokens, n] = matrix_shape("dy", dy);
  const std::int64_t k = matrix_shape("w", w).columns;
  check_matrix("w", w, n, k);
  check_float("dy", dy);
  check_float("w", w);
  enqueue(stream,
          "linear_dgrad",
          {tokens, k},
          n,
          operand(stream, dy, Transpose::No),
          operand(stream, w, Transpose::No),
          dx,
          Write::Assign);
}

void linear_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x) {
  const auto [tokens, n] = matrix_shape("dy", dy);
  const std::int64_t k = matrix_shape("x", x).columns;
  check_matrix("x", x, tokens, k);
  check_float("dy", dy);
  check_float("x", x);
  check_dtype("dw", dw, DType::F32);
  enqueue(stream,
          "linear_wgrad",
          {n, k},
          tokens,
          operand(stream, dy, Transpose::Yes),
          operand(stream, x, Transpose::No),
          dw,
          Write::Accumulate);
}

}  // namespace weft::kernels
