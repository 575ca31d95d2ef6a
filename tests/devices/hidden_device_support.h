// CPU device whose memory the host cannot address, as a GPU's: addresses lie in a reservation
// without access rights. Only kernels, copies and a stream's transfers translate them. Any other
// access crashes at once.
#pragma once

#include <memory>

#include "weft/tensor/device.h"

namespace weft::devices {

// Devices of a process share the reservation, as ranks share a GPU.
std::unique_ptr<tensor::Device> make_hidden_device(int threads);

}  // namespace weft::devices
