#include "weft/kernels/device.h"

#include "weft/kernels/cpu/operations.h"
#include "weft/tensor/cpu/device.h"

namespace weft::kernels {

std::unique_ptr<tensor::Device> make_cpu_device(int threads) {
  return std::make_unique<tensor::cpu::CpuDevice>(cpu::operations(), threads);
}

namespace cpu {

const Operations& operations() {
  static constexpr Operations kTable{WEFT_EACH_OPERATION(WEFT_OPERATION_OF_TABLE)};
  return kTable;
}

}  // namespace cpu
}  // namespace weft::kernels
