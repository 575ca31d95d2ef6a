#include "weft/tensor/cuda/reduce.h"

namespace weft::tensor::cuda {
namespace reduce_kernels {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostBlocks = 1056;  // eight per multiprocessor, of 132

template <typename T>
__device__ T larger(T a, T b) {
  if (a != a) return a;
  if (b != b) return b;
  return a > b ? a : b;
}

// Type in which sums of T are computed.
template <typename T>
struct Wide {
  using Type = T;
};
template <>
struct Wide<__nv_bfloat16> {
  using Type = float;
};

template <typename T>
__global__ void reduce(T* out, Sources<T> sources, Combine combine, std::int64_t elements) {
  using Value = typename Wide<T>::Type;
  const std::int64_t step = std::int64_t(gridDim.x) * blockDim.x;
  for (std::int64_t i = std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < elements;
       i += step) {
    Value value = static_cast<Value>(sources.at[0][i]);
    for (int s = 1; s < sources.count; ++s) {
      const Value next = static_cast<Value>(sources.at[s][i]);
      value = combine == Combine::Sum ? value + next : larger(value, next);
    }
    out[i] = static_cast<T>(value);
  }
}

}  // namespace
}  // namespace reduce_kernels

template <typename T>
cudaError_t launch_reduce(cudaStream_t stream,
                          T* out,
                          const Sources<T>& sources,
                          Combine combine,
                          std::int64_t elements) {
  const std::int64_t wanted = (elements + reduce_kernels::kThreads - 1) / reduce_kernels::kThreads;
  const auto blocks = static_cast<unsigned>(
      wanted < reduce_kernels::kMostBlocks ? wanted : reduce_kernels::kMostBlocks);
  reduce_kernels::reduce<T>
      <<<blocks, reduce_kernels::kThreads, 0, stream>>>(out, sources, combine, elements);
  return cudaGetLastError();
}

template cudaError_t launch_reduce(cudaStream_t,
                                   float*,
                                   const Sources<float>&,
                                   Combine,
                                   std::int64_t);
template cudaError_t launch_reduce(cudaStream_t,
                                   __nv_bfloat16*,
                                   const Sources<__nv_bfloat16>&,
                                   Combine,
                                   std::int64_t);
template cudaError_t launch_reduce(cudaStream_t,
                                   double*,
                                   const Sources<double>&,
                                   Combine,
                                   std::int64_t);
template cudaError_t launch_reduce(cudaStream_t,
                                   std::int64_t*,
                                   const Sources<std::int64_t>&,
                                   Combine,
                                   std::int64_t);

cudaError_t find_reduce_image() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reduce_kernels::reduce<float>);
}

}  // namespace weft::tensor::cuda
