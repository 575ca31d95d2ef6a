#include "weft/kernels/cpu/gemm/gemm.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

namespace {

// Calls product(expert, first row, rows) for each expert and runs the products it returns. The
// counts become known here, and are checked against the room.
template <typename Product>
void enqueue_grouped(Stream& stream,
                     std::string_view name,
                     const Tensor& rows_E,
                     std::int64_t room,
                     Product product) {
  const std::int64_t experts = rows_E.dim(0);
  const std::int64_t* counts = data<std::int64_t>(stream, rows_E);
  const Faults faults(stream);
  const auto work = [=](Workers& workers) {
    std::vector<Gemm> gemms;
    std::int64_t row = 0;
    for (std::int64_t e = 0; e < experts; ++e) {
      const std::int64_t rest = room - row;
      if (counts[e] < 0 || counts[e] > rest) {
        return faults.raise(FaultCode::RowsOfExpertBeyondRest, {counts[e], e, rest});
      }
      gemms.push_back(product(e, row, counts[e]));
      row += counts[e];
    }
    run_gemms(workers, gemms);
  };
  enqueue(stream, name, WorkClass::Gemm, work, {.rows = room});
}

}  // namespace

void grouped_linear_forward(Stream& stream, Tensor y, Tensor x, Tensor w, Tensor rows_E) {
  const std::int64_t experts = w.dim(0), n = w.dim(1), k = w.dim(2);
  const std::int64_t room = x.dim(0);
  const Operand a = operand(stream, x, Transpose::No);
  const Operand b = operand(stream, w.view({experts * n, k}), Transpose::Yes);
  std::byte* c = bytes_of(stream, y);
  enqueue_grouped(stream,
                  "grouped_linear_forward",
                  rows_E,
                  room,
                  [=, dtype = y.dtype()](std::int64_t expert, std::int64_t row, std::int64_t rows) {
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
  const std::int64_t experts = w.dim(0), n = w.dim(1), k = w.dim(2);
  const std::int64_t room = dy.dim(0);
  const Operand a = operand(stream, dy, Transpose::No);
  const Operand b = operand(stream, w.view({experts * n, k}), Transpose::No);
  std::byte* c = bytes_of(stream, dx);
  enqueue_grouped(
      stream,
      "grouped_linear_dgrad",
      rows_E,
      room,
      [=, dtype = dx.dtype()](std::int64_t expert, std::int64_t row, std::int64_t rows) {
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

void grouped_linear_wgrad(Stream& stream,
                          Tensor dw,
                          Tensor dy,
                          Tensor x,
                          Tensor rows_E,
                          Write write) {
  const std::int64_t n = dw.dim(1), k = dw.dim(2);
  const std::int64_t room = dy.dim(0);
  const Operand a = operand(stream, dy, Transpose::Yes);
  const Operand b = operand(stream, x, Transpose::No);
  std::byte* c = bytes_of(stream, dw);
  enqueue_grouped(stream,
                  "grouped_linear_wgrad",
                  rows_E,
                  room,
                  [=](std::int64_t expert, std::int64_t row, std::int64_t rows) {
                    return Gemm{.m = n,
                                .n = k,
                                .k = rows,
                                .a = a.rows_from(row),
                                .b = b.rows_from(row),
                                .c = c + expert * n * k * tensor::size_of(DType::F32),
                                .c_stride = k,
                                .write = write};
                  });
}

}  // namespace weft::kernels::cpu
