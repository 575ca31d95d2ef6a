#include "weft/kernels/cuda/device/shared_memory.h"

#include <mutex>
#include <set>
#include <utility>

#include "weft/tensor/cuda/call.h"

namespace weft::kernels::cuda {

using tensor::cuda::check;

void allow_shared(const void* kernel, int bytes) {
  int ordinal = 0;
  check("cudaGetDevice", cudaGetDevice(&ordinal));
  static std::mutex mutex;
  static std::set<std::pair<const void*, int>> told;
  const std::lock_guard lock(mutex);
  if (told.contains({kernel, ordinal})) return;
  check("cudaFuncSetAttribute",
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  told.insert({kernel, ordinal});
}

}  // namespace weft::kernels::cuda
