#include "weft/kernels/cpu/gemm/gemm.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

void enqueue_product(Stream& stream,
                     std::string_view name,
                     std::int64_t k,
                     const Operand& a,
                     const Operand& b,
                     const Tensor& c,
                     Write write) {
  enqueue_gemms(stream,
                name,
                {{.m = c.dim(0),
                  .n = c.dim(1),
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
  enqueue_product(stream,
                  "linear_forward",
                  x.dim(1),
                  operand(stream, x, Transpose::No),
                  operand(stream, w, Transpose::Yes),
                  y,
                  Write::Assign);
}

void linear_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor w) {
  enqueue_product(stream,
                  "linear_dgrad",
                  dy.dim(1),
                  operand(stream, dy, Transpose::No),
                  operand(stream, w, Transpose::No),
                  dx,
                  Write::Assign);
}

void linear_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Write write) {
  enqueue_product(stream,
                  "linear_wgrad",
                  dy.dim(0),
                  operand(stream, dy, Transpose::Yes),
                  operand(stream, x, Transpose::No),
                  dw,
                  write);
}

}  // namespace weft::kernels::cpu
