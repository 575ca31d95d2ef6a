// Checked calls of the CUDA runtime; an error names the call.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

namespace weft::tensor::cuda {

// Throws SystemError: "cudaMalloc: out of memory".
[[noreturn]] void throw_cuda(std::string_view call, cudaError_t error);

inline void check(std::string_view call, cudaError_t error) {
  if (error != cudaSuccess) throw_cuda(call, error);
}

}  // namespace weft::tensor::cuda
