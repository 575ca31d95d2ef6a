// Products of an fp32 factor with a bf16 one, which the library does not mix. An fp32 number is the
// sum of three bf16 numbers: its first 8 bits, the next 8 and the rest. Tensor cores multiply each
// of them exactly, and add up in fp32.
#pragma once

#include <string_view>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/gemm/product.h"

namespace weft::kernels::cuda {

// True: the product was enqueued. a is fp32 and b bf16, it is large enough to be worth three more
// bf16 matrices, and the library has algorithms for it.
bool enqueue_split(Stream& stream, std::string_view name, const Product& product);

}  // namespace weft::kernels::cuda
