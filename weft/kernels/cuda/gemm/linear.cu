#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/gemm/blas.h"
#include "weft/kernels/cuda/gemm/split_product.h"
#include "weft/kernels/cuda/gemm/tiled_product.h"

namespace weft::kernels::cuda {
namespace linear_kernels {
namespace {

void enqueue_tiled(Stream& stream, std::string_view name, const Product& product) {
  enqueue_all(stream, name, WorkClass::Gemm, [=](cudaStream_t handle) {
    launch_tiled(handle, product);
  });
}

void enqueue_product(Stream& stream, std::string_view name, const Product& product) {
  if (product.is_nothing() || product.k == 0) return enqueue_tiled(stream, name, product);
  if (enqueue_split(stream, name, product)) return;
  Blas& blas = Blas::of_card(tensor::cuda::ordinal_of(stream));
  const MatmulPlan* plan = blas.plan_for(product, tensor::cuda::kWorkspaceBytes);
  if (plan == nullptr) return enqueue_tiled(stream, name, product);
  std::byte* workspace = scratch<std::byte>(stream, plan->workspace_bytes);
  enqueue_all(stream, name, WorkClass::Gemm, [=, &blas](cudaStream_t handle) {
    blas.run(*plan, product, workspace, handle);
  });
}

}  // namespace
}  // namespace linear_kernels

void linear_forward(Stream& stream, Tensor y, Tensor x, Tensor w) {
  const Product product{.m = y.dim(0),
                        .n = y.dim(1),
                        .k = x.dim(1),
                        .a = factor(stream, x, SumOver::Columns),
                        .b = factor(stream, w, SumOver::Columns),
                        .c = bytes_of(stream, y),
                        .c_dtype = y.dtype(),
                        .c_stride = y.row_stride()};
  linear_kernels::enqueue_product(stream, "linear_forward", product);
}

void linear_dgrad(Stream& stream, Tensor dx, Tensor dy, Tensor w) {
  const Product product{.m = dx.dim(0),
                        .n = dx.dim(1),
                        .k = dy.dim(1),
                        .a = factor(stream, dy, SumOver::Columns),
                        .b = factor(stream, w, SumOver::Rows),
                        .c = bytes_of(stream, dx),
                        .c_dtype = dx.dtype(),
                        .c_stride = dx.row_stride()};
  linear_kernels::enqueue_product(stream, "linear_dgrad", product);
}

void linear_wgrad(Stream& stream, Tensor dw, Tensor dy, Tensor x, Write write) {
  const Product product{.m = dw.dim(0),
                        .n = dw.dim(1),
                        .k = dy.dim(0),
                        .a = factor(stream, dy, SumOver::Rows),
                        .b = factor(stream, x, SumOver::Rows),
                        .c = bytes_of(stream, dw),
                        .c_dtype = dw.dtype(),
                        .c_stride = dw.row_stride(),
                        .write = write};
  linear_kernels::enqueue_product(stream, "linear_wgrad", product);
}

}  // namespace weft::kernels::cuda
