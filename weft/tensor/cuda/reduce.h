// Sums and maxima of several members' elements on the card. A header that kernels are compiled
// with: it includes nothing of the host's.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace weft::tensor::cuda {

inline constexpr int kMostSources = 64;  // of one launch

template <typename T>
struct Sources {
  const T* at[kMostSources];
  int count;
};

enum class Combine { Sum, Max };

// Element by element, in the order of the sources; T is float, __nv_bfloat16 (summed in fp32 and
// rounded once), double or std::int64_t.
template <typename T>
cudaError_t launch_reduce(cudaStream_t stream,
                          T* out,
                          const Sources<T>& sources,
                          Combine combine,
                          std::int64_t elements);

// Whether the current card has an image of these kernels, and so of all that were built with them:
// cudaErrorNoKernelImageForDevice where it has not.
cudaError_t find_reduce_image();

}  // namespace weft::tensor::cuda
