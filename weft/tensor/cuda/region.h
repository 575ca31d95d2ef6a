// Memory of a GPU that grows in place: addresses for all of the card are reserved, and memory is
// put behind them as it is needed.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "weft/tensor/device.h"

namespace weft::tensor::cuda {

class CudaDevice;

// Null where the card or its driver cannot map memory so.
std::unique_ptr<Region> make_growing_region(const CudaDevice& device);

}  // namespace weft::tensor::cuda
