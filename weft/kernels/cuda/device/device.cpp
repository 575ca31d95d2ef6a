#include "weft/tensor/cuda/device.h"

#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/report.h"
#include "weft/kernels/cuda_entry.h"
#include "weft/kernels/operations.h"

namespace weft::kernels::cuda {

const Operations& operations() {
  static constexpr Operations kTable{WEFT_EACH_OPERATION(WEFT_OPERATION_OF_TABLE)};
  return kTable;
}

}  // namespace weft::kernels::cuda

extern "C" const weft::kernels::cuda::Entry weft_cuda_entry{
    .version = weft::kernels::cuda::kEntryVersion,
    .make_device = [](int local_rank,
                      weft::tensor::Deterministic deterministic) -> weft::tensor::Device* {
      return new weft::tensor::cuda::CudaDevice(weft::kernels::cuda::operations(),
                                                local_rank,
                                                deterministic);
    },
    .report = weft::kernels::cuda::report};
