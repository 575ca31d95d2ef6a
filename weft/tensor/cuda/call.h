// Calls of the CUDA runtime: every one is checked, and a failure names it.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

namespace weft::tensor::cuda {

// SystemError: "cudaMalloc: out of memory".
[[noreturn]] void throw_cuda(std::string_view call, cudaError_t error);

inline void check(std::string_view call, cudaError_t error) {
  if (error != cudaSuccess) throw_cuda(call, error);
}

}  // namespace weft::tensor::cuda
