// Kernels that take more than 48 KiB of shared memory.
#pragma once

namespace weft::kernels::cuda {

// They must be told so on each card before their first launch: this tells it once, for the card of
// the calling thread.
void allow_shared(const void* kernel, int bytes);

template <typename... Parameters>
void allow_shared(void (*kernel)(Parameters...), int bytes) {
  allow_shared(reinterpret_cast<const void*>(kernel), bytes);
}

}  // namespace weft::kernels::cuda
