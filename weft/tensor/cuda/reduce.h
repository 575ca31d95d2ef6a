// Sums and maxima of several members' elements on the GPU. nvcc compiles this header: it includes
// no host code.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace weft::tensor::cuda {

inline constexpr int kMostSources = 64;  // per launch

template <typename T>
struct Sources {
  const T* at[kMostSources];
  int count;
};

enum class Combine { Sum, Max };

// Combines element by element in the order of the sources. T: float, __nv_bfloat16 (summed in fp32
// and rounded once), double or std::int64_t.
template <typename T>
cudaError_t launch_reduce(cudaStream_t stream,
                          T* out,
                          const Sources<T>& sources,
                          Combine combine,
                          std::int64_t elements);

// cudaErrorNoKernelImageForDevice if the current GPU has no image of these kernels, and so of none
// in this build.
cudaError_t find_reduce_image();

}  // namespace weft::tensor::cuda
