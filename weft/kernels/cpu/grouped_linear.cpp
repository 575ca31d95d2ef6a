#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/kernels/cpu/gemm.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

struct GroupedShape {
  std::int64_t experts = 0, n = 0, k = 0;
};

GroupedShape check_weights(std::string_view name, const Tensor& w, const Tensor& rows_E) {
  CHECK(w.shape().rank() == 3, "{} is {}, should be (E, N, K)", name, w.shape().print());
  check_vector("rows", rows_E, w.dim(0));
  check_dtype("rows", rows_E, DType::I64);
  check_float(name, w);
  check_contiguous(name, w);
  return {w.dim(0), w.dim(1), w.dim(2)};
}

void check_rows(std::string_view name, const Tensor& x, std::int64_t rows, std::int64_t columns) {
  check_matrix(name, x, rows, columns);
  check_float(name, x);
  check_contiguous(name, x);
}

// Calls product(expert, first row, rows) for each expert and runs what it returns. The counts are
// known here and not before: they are held against the room.
template <typename Product>
void enqueue_grouped(Stream& stream,
                     std::string_view name,
                     const Tensor& rows_E,
                     std::int64_t room,
                     Product product) {
  const std::int64_t experts = rows_E.dim(0);
  const std::int64_t* counts = rows_E.data<std::int64_t>(stream);
  stream.enqueue(name,
                 WorkClass::Gemm,
                 [=](Workers& workers) {
                   std::vector<Gemm> gemms;
                   std::int64_t row = 0;
                   for (std::int64_t e = 0; e < experts; ++e) {
                     if (counts[e] < 0 || counts[e] > room - row) {
                       throw base::SystemError(
                           base::text("{} rows for expert {} of this rank, and room for {} more",
                                      counts[e],
                                      e,
                                      room - row));
                     }
                     gemms.push_back(product(e, row, counts[e]));
                     row += counts[e];
                   }
                   run_gemms(workers, gemms);
                 },
                 {.rows = room});
}

}  // namespace

void grouped_linear_forward(Stream& stream, Tensor y, Tensor x, Tensor w, Tensor rows_E) {
  const auto [experts, n, k] = check_weights("w", w, rows_E);
  const std::int64_t room = x.dim(0);
  check_rows("x", x, room, k);
  check_rows("y", y, room, n);
  const Operand a = operand(stream, x, Transpose::No);
  const Operand b = operand(stream, w.view({experts * n, k}), Transpose::Yes);
  std::byte* c = bytes_of(stream, y);
  enqueue_grouped(stream,
                  "grouped_linear_forward",
                  rows_E,
                  room,
                  [=, n = n, k = k, dtype = y.dtype()](std::int64_t expert,
                                                       std::int64_t row,
                                                       std::int64_t rows) {
                    return Gemm{.m = rows,
                                .n = n,
                                .k = k,
                                .a = a.rows_from(row),
                                .b = b.rows_from(expert * n),
                                .c = c + row * n * tensor::size_of(dtype),
                                .c_dtype = dtype,
                                .c_stride = n};
                  });
}

void grouped_linear_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor w, Tensor rows_E) {
  const auto [experts, n, k] = check_weights("w", w, rows_E);
  const std::int64_t room = dy.dim(0);
  check_rows("dy", dy, room, n);
  check_rows("dx", dx, room, k);
  const Operand a = operand(stream, dy, Transpose::No);
  const Operand b = operand(stream, w.view({experts * n, k}), Transpose::No);
  std::byte* c = bytes_of(stream, dx);
  enqueue_grouped(stream,
                  "grouped_linear_dgrad",
                  rows_E,
                  room,
                  [=, n = n, k = k, dtype = dx.dtype()](std::int64_t expert,
                                                        std::int64_t row,
                                                        std::int64_t rows) {
                    return Gemm{.m = rows,
                                .n = k,
                                .k = n,
                                .a = a.rows_from(row),
                                .b = b.rows_from(expert * n),
                                .c = c + row * k * tensor::size_of(dtype),
                                .c_dtype = dtype,
                                .c_stride = k};
                  });
}

void grouped_linear_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Tensor rows_E) {
  const auto [experts, n, k] = check_weights("dw", dw, rows_E);
  const std::int64_t room = dy.dim(0);
  check_dtype("dw", dw, DType::F32);
  check_rows("dy", dy, room, n);
  check_rows("x", x, room, k);
  const Operand a = operand(stream, dy, Transpose::Yes);
  const Operand b = operand(stream, x, Transpose::No);
  std::byte* c = bytes_of(stream, dw);
  enqueue_grouped(stream,
                  "grouped_linear_wgrad",
                  rows_E,
                  room,
                  [=, n = n, k = k](std::int64_t expert, std::int64_t row, std::int64_t rows) {
                    return Gemm{.m = n,
                                .n = k,
                                .k = rows,
                                .a = a.rows_from(row),
                                .b = b.rows_from(row),
                                .c = c + expert * n * k * tensor::size_of(DType::F32),
                                .c_stride = k,
                                .write = Write::Accumulate};
                  });
}

}  // namespace weft::kernels
