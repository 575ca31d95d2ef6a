// A CPU whose device memory the host cannot touch, as that of a graphics card: addresses lie in a
// reservation without access rights, and only kernels, copies and the transfers of a stream
// translate them to where the bytes are. Whoever follows such an address without them dies at once.
#pragma once

#include <memory>

#include "weft/tensor/device.h"

namespace weft::devices {

// Devices of one process share the reservation, as ranks share a card.
std::unique_ptr<tensor::Device> make_hidden_device(int threads);

}  // namespace weft::devices
