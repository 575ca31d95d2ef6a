// Products of experts on the tensor cores of Hopper: bf16 factors, fp32 sums. One block sums an
// element, in the order of d, so that the bits depend on the inputs alone.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

#include "weft/kernels/cuda/gemm/expert_rows.h"
#include "weft/kernels/cuda/gemm/product.h"
#include "weft/kernels/cuda/hopper/scheduler.h"

namespace weft::kernels::cuda {

// A product, as far as the host knows it before the counts. The launch takes it by value.
struct HopperProduct {
  CUtensorMap a{}, b{}, c{};
  hopper::Problem problem;
  RowCut cut;  // cut of the ExpertRows
  int multiprocessors = 0;
  void (*launch)(cudaStream_t, const HopperProduct&) = nullptr;

  void set(const ExpertRows& rows) {
    problem.first_row = rows.first_row;
    problem.first_tile = rows.first_tile;
    problem.by_count = rows.by_count;
  }
};

// Plans what launch_tiled_rows and launch_tiled_sums compute: `product.m` and `product.k`
// respectively are not read. Sums may also be assigned: an expert without rows then gets zeros.
// `room` is for the rows of all experts. The tile is the best of choose_tile (hopper_tile.h).
//
// nullopt: another kernel must do it. This one needs a Hopper card and bf16 factors, and sizes that
// are multiples of 8 and not zero, for TMA.
std::optional<HopperProduct> hopper_rows(int ordinal,
                                         const Product& product,
                                         std::int64_t experts,
                                         std::int64_t room);
std::optional<HopperProduct> hopper_sums(int ordinal,
                                         const Product& product,
                                         std::int64_t experts,
                                         std::int64_t room);

// Called once the ExpertRows are set; launch_find_rows must fill them before in the stream.
inline void launch_hopper(cudaStream_t stream, const HopperProduct& product) {
  product.launch(stream, product);
}

}  // namespace weft::kernels::cuda
