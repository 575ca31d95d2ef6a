// The experts' products on the tensor cores of Hopper: bf16 factors, fp32 sums. Each element is
// summed in the order of d by one block, so that the bits depend on the inputs alone.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

#include "weft/kernels/cuda/gemm/expert_rows.h"
#include "weft/kernels/cuda/gemm/product.h"
#include "weft/kernels/cuda/hopper/scheduler.h"

namespace weft::kernels::cuda {

// A product with all that is known before the counts; the launch takes it by value.
struct HopperProduct {
  CUtensorMap a{}, b{}, c{};
  hopper::Work work;
  RowCut cut;  // what ExpertRows must be made with
  int multiprocessors = 0;
  void (*launch)(cudaStream_t, const HopperProduct&) = nullptr;

  void set(const ExpertRows& rows) {
    work.first_row = rows.first_row;
    work.first_tile = rows.first_tile;
    work.by_count = rows.by_count;
  }
};

// What launch_tiled_rows computes (`product.m` is not read) and launch_tiled_sums (`product.k` is
// not read), here also with Write::Assign: an expert without rows then gets zeros. `room` is for
// the rows of all experts.
//
// None where it is not for this kernel: on other cards, other dtypes, and sizes that are zero or
// not multiples of 8, which the copy engine cannot address.
std::optional<HopperProduct> hopper_rows(int ordinal,
                                         const Product& product,
                                         std::int64_t experts,
                                         std::int64_t room);
std::optional<HopperProduct> hopper_sums(int ordinal,
                                         const Product& product,
                                         std::int64_t experts,
                                         std::int64_t room);

// After the ExpertRows were set and launch_find_rows filled them.
inline void launch_hopper(cudaStream_t stream, const HopperProduct& product) {
  product.launch(stream, product);
}

}  // namespace weft::kernels::cuda
