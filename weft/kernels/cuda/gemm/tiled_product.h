// Our own kernel for matrix products: any mix of fp32 and bf16, any strides and alignment, and
// experts whose rows only the GPU knows. Each element is one fp32 sum in the order of d for every
// shape, so that the bits depend on the inputs alone.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/gemm/expert_rows.h"
#include "weft/kernels/cuda/gemm/product.h"

namespace weft::kernels::cuda {

// Rows of the result per block: the cuts of ExpertRows.
inline constexpr std::int64_t kTiledRows = 64;

Factor factor(Stream& stream, const Tensor& matrix, SumOver sum_over);

void launch_tiled(cudaStream_t stream, const Product& product);

// One product per expert, of its rows of a and c and its own b. The b of the experts, n k elements
// each, lie one behind the other. `product.m` is not read.
void launch_tiled_rows(cudaStream_t stream, const Product& product, const ExpertRows& rows);

// One product per expert, summed over its rows of a and b and added to its own fp32 c. The c of the
// experts, m n elements each, lie one behind the other. `product.k` is not read.
void launch_tiled_sums(cudaStream_t stream, const Product& product, const ExpertRows& rows);

}  // namespace weft::kernels::cuda
