// Calls of the CUDA runtime: every one is checked, and a failure names it.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "weft/base/check.h"
#include "weft/base/error.h"

namespace weft::tensor::cuda {

// SystemError: "cudaMalloc: out of memory".
[[noreturn]] inline void throw_cuda(std::string_view call, cudaError_t error) {
  throw base::SystemError(base::text("{}: {}", call, cudaGetErrorString(error)));
}

inline void check(std::string_view call, cudaError_t error) {
  if (error != cudaSuccess) throw_cuda(call, error);
}

}  // namespace weft::tensor::cuda
