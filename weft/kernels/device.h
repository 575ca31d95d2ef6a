// The devices this program knows: each is made of the memory and streams of its folder in tensor/
// and the operations of its folder here.
#pragma once

#include <memory>

#include "weft/tensor/device.h"

namespace weft::kernels {

// `threads` compute threads for each stream that computes.
std::unique_ptr<tensor::Device> make_cpu_device(int threads = 1);

// The GPU with that number, counted as the driver counts. SystemError where this build has no CUDA
// device, where its libraries or the driver are missing, and where there is no such GPU.
std::unique_ptr<tensor::Device> make_cuda_device(int ordinal = 0);

}  // namespace weft::kernels
