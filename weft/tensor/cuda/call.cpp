#include "weft/tensor/cuda/call.h"

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::tensor::cuda {
namespace {

// True for an error of earlier GPU work: every later call returns it, whatever the call does.
bool is_of_earlier_work(cudaError_t error) {
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

}  // namespace

void throw_cuda(std::string_view call, cudaError_t error) {
  throw base::SystemError(base::text(
      "{}: {}{}",
      call,
      cudaGetErrorString(error),
      is_of_earlier_work(error) ? "; the work that failed was enqueued at or before this place "
                                  "(CUDA_LAUNCH_BLOCKING=1 in the environment of a second run "
                                  "names it)"
                                : ""));
}

}  // namespace weft::tensor::cuda
