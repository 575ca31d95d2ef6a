#include "weft/kernels/cuda/operations.h"
#include "weft/kernels/cuda/tiled_product.h"

namespace weft::kernels::cuda {
namespace {

using Launch = void (*)(cudaStream_t, const Product&, const ExpertRows&);

// The counts are known on the GPU and not before: there they are held against the room, and where
// they do not fit nothing is computed.
void enqueue_grouped(Stream& stream,
                     std::string_view name,
                     Launch launch,
                     const Product& product,
                     const Tensor& rows_E,
                     std::int64_t room) {
  const std::int64_t* counts = data<std::int64_t>(stream, rows_E);
  const ExpertRows rows = expert_rows(stream, rows_E.dim(0), room, kTiledRows);
  const Faults faults(stream);
  const auto work = [=](cudaStream_t handle) {
    launch_find_rows(handle, rows, counts, faults);
    launch(handle, product, rows);
  };
  cuda_stream(stream).enqueue(name, WorkClass::Gemm, work, {.rows = room});
}

// The weights of all experts, one below the other.
Tensor stacked(const Tensor& w) { return w.view({w.dim(0) * w.dim(1), w.dim(2)}); }

}  // namespace

void grouped_linear_forward(Stream& stream, Tensor y, Tensor x, Tensor w, Tensor rows_E) {
  const std::int64_t n = w.dim(1), k = w.dim(2);
  const Product product{.n = n,
                        .k = k,
                        .a = factor(stream, x, SumOver::Columns),
                        .b = factor(stream, stacked(w), SumOver::Columns),
                        .c = bytes_of(stream, y),
                        .c_dtype = y.dtype(),
                        .c_stride = n};
  enqueue_grouped(stream, "grouped_linear_forward", launch_tiled_rows, product, rows_E, x.dim(0));
}

void grouped_linear_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor w, Tensor rows_E) {
  const std::int64_t n = w.dim(1), k = w.dim(2);
  const Product product{.n = k,
                        .k = n,
                        .a = factor(stream, dy, SumOver::Columns),
                        .b = factor(stream, stacked(w), SumOver::Rows),
                        .c = bytes_of(stream, dx),
                        .c_dtype = dx.dtype(),
                        .c_stride = k};
  enqueue_grouped(stream, "grouped_linear_dgrad", launch_tiled_rows, product, rows_E, dy.dim(0));
}

void grouped_linear_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Tensor rows_E) {
  const std::int64_t n = dw.dim(1), k = dw.dim(2);
  const Product product{.m = n,
                        .n = k,
                        .a = factor(stream, dy, SumOver::Rows),
                        .b = factor(stream, x, SumOver::Rows),
                        .c = bytes_of(stream, dw),
                        .c_stride = k,
                        .write = Write::Accumulate};
  enqueue_grouped(stream, "grouped_linear_wgrad", launch_tiled_sums, product, rows_E, dy.dim(0));
}

}  // namespace weft::kernels::cuda
