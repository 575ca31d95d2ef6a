#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/gemm/tiled_product.h"
#include "weft/kernels/cuda/hopper/product.h"

namespace weft::kernels::cuda {
namespace grouped_linear_kernels {
namespace {

// Kernels for a product: the one for Hopper, if it takes the product, or the one for all cards.
struct Kernels {
  std::optional<HopperProduct> (*hopper)(int, const Product&, std::int64_t, std::int64_t);
  void (*tiled)(cudaStream_t, const Product&, const ExpertRows&);
};
constexpr Kernels kRows{hopper_rows, launch_tiled_rows}, kSums{hopper_sums, launch_tiled_sums};

// The counts are known on the GPU alone. They are checked against the room there; if they do not
// fit, nothing is computed.
void enqueue_grouped(Stream& stream,
                     std::string_view name,
                     const Kernels& kernels,
                     const Product& product,
                     const Tensor& rows_E,
                     std::int64_t room) {
  const std::int64_t* counts = data<std::int64_t>(stream, rows_E);
  const int ordinal = tensor::cuda::ordinal_of(stream);
  std::optional<HopperProduct> hopper = kernels.hopper(ordinal, product, rows_E.dim(0), room);
  const RowCut cut = hopper ? hopper->cut : RowCut{.rows = kTiledRows};
  const ExpertRows rows = expert_rows(stream, rows_E.dim(0), room, cut);
  if (hopper) hopper->set(rows);
  const Faults faults(stream);
  const auto work = [=, tiled = kernels.tiled](cudaStream_t handle) {
    launch_find_rows(handle, rows, counts, faults);
    if (hopper) {
      launch_hopper(handle, *hopper);
    } else {
      tiled(handle, product, rows);
    }
  };
  enqueue_all(stream, name, WorkClass::Gemm, work, {.rows = room});
}

// Weights of all experts, one below the other.
Tensor stacked(const Tensor& w) { return w.view({w.dim(0) * w.dim(1), w.dim(2)}); }

}  // namespace
}  // namespace grouped_linear_kernels

void grouped_linear_forward(Stream& stream, Tensor y, Tensor x, Tensor w, Tensor rows_E) {
  const std::int64_t n = w.dim(1), k = w.dim(2);
  const Product product{.n = n,
                        .k = k,
                        .a = factor(stream, x, SumOver::Columns),
                        .b = factor(stream, grouped_linear_kernels::stacked(w), SumOver::Columns),
                        .c = bytes_of(stream, y),
                        .c_dtype = y.dtype(),
                        .c_stride = n};
  grouped_linear_kernels::enqueue_grouped(stream,
                                          "grouped_linear_forward",
                                          grouped_linear_kernels::kRows,
                                          product,
                                          rows_E,
                                          x.dim(0));
}

void grouped_linear_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor w, Tensor rows_E) {
  const std::int64_t n = w.dim(1), k = w.dim(2);
  const Product product{.n = k,
                        .k = n,
                        .a = factor(stream, dy, SumOver::Columns),
                        .b = factor(stream, grouped_linear_kernels::stacked(w), SumOver::Rows),
                        .c = bytes_of(stream, dx),
                        .c_dtype = dx.dtype(),
                        .c_stride = k};
  grouped_linear_kernels::enqueue_grouped(stream,
                                          "grouped_linear_dgrad",
                                          grouped_linear_kernels::kRows,
                                          product,
                                          rows_E,
                                          dy.dim(0));
}

void grouped_linear_wgrad(Stream& stream,
                          Tensor dw,
                          Tensor dy,
                          Tensor x,
                          Tensor rows_E,
                          Write write) {
  const std::int64_t n = dw.dim(1), k = dw.dim(2);
  const Product product{.m = n,
                        .n = k,
                        .a = factor(stream, dy, SumOver::Rows),
                        .b = factor(stream, x, SumOver::Rows),
                        .c = bytes_of(stream, dw),
                        .c_stride = k,
                        .write = write};
  grouped_linear_kernels::enqueue_grouped(stream,
                                          "grouped_linear_wgrad",
                                          grouped_linear_kernels::kSums,
                                          product,
                                          rows_E,
                                          dy.dim(0));
}

}  // namespace weft::kernels::cuda
