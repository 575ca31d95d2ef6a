// Kernels with more than 48 KiB of shared memory.
#pragma once

namespace weft::kernels::cuda {

// Allows a kernel its shared memory on the calling thread's card. A card must be asked before the
// kernel's first launch, and is asked once.
void allow_shared(const void* kernel, int bytes);

template <typename... Parameters>
void allow_shared(void (*kernel)(Parameters...), int bytes) {
  allow_shared(reinterpret_cast<const void*>(kernel), bytes);
}

}  // namespace weft::kernels::cuda
