// Calls of the CUDA runtime: every one is checked, and a failure names it.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "weft/base/check.h"
#include "weft/base/error.h"

namespace weft::tensor::cuda {

// Whether earlier work failed on the card: every call says so from then on, whatever it asks for.
inline bool is_of_earlier_work(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
      return true;
    default:
      return false;
  }
}

// SystemError: "cudaMalloc: out of memory".
[[noreturn]] inline void throw_cuda(std::string_view call, cudaError_t error) {
  throw base::SystemError(base::text(
      "{}: {}{}",
      call,
      cudaGetErrorString(error),
      is_of_earlier_work(error) ? "; the work that failed was enqueued at or before this place "
                                  "(CUDA_LAUNCH_BLOCKING=1 in the environment of a second run "
                                  "names it)"
                                : ""));
}

inline void check(std::string_view call, cudaError_t error) {
  if (error != cudaSuccess) throw_cuda(call, error);
}

}  // namespace weft::tensor::cuda
