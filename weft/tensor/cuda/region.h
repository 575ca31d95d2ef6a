// GPU memory that grows in place: addresses for the whole GPU are reserved, and memory is mapped
// behind them as needed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "weft/tensor/device.h"

namespace weft::tensor::cuda {

class CudaDevice;

// nullptr: the GPU or its driver cannot map memory.
std::unique_ptr<Region> make_growing_region(const CudaDevice& device);

}  // namespace weft::tensor::cuda
