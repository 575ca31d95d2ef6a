// The devices this build has: each is made of the memory and streams of its folder in tensor/ and
// the operations of its folder here.
#pragma once

#include <memory>

#include "weft/tensor/device.h"

namespace weft::kernels {

// `threads` compute threads for each stream that computes.
std::unique_ptr<tensor::Device> make_cpu_device(int threads = 1);

}  // namespace weft::kernels
