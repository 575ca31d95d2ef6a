// TMA (the Tensor Memory Accelerator) as PTX: loads, stores and reductions of boxes.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "weft/kernels/cuda/hopper/barriers.h"

namespace weft::kernels::cuda::hopper {

// Coordinates of a box in a tensor map, the innermost dimension first. A matrix may be cut into
// strips of columns: strips are a dimension of their own, so that one load brings several.
struct Coordinates {
  int column, row, strip, matrix;
};

__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
// Loads a box into this block's shared memory. Its bytes count at `full`. Elements outside of the
// tensor are zero, and count too.
__device__ __forceinline__ void tma_load(std::byte* to,
                                         const CUtensorMap& map,
                                         const Coordinates& at,
                                         Barrier& full) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(to)),
      "l"(&map),
      "r"(shared_address(&full)),
      "r"(at.column),
      "r"(at.row),
      "r"(at.strip),
      "r"(at.matrix)
      : "memory");
}
// Loads a box into each block of the cluster whose bit is set in `ranks`.
__device__ __forceinline__ void tma_load_multicast(std::byte* to,
                                                   const CUtensorMap& map,
                                                   const Coordinates& at,
                                                   Barrier& full,
                                                   std::uint16_t ranks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(shared_address(to)),
      "l"(&map),
      "r"(shared_address(&full)),
      "h"(ranks),
      "r"(at.column),
      "r"(at.row),
      "r"(at.strip),
      "r"(at.matrix)
      : "memory");
}

// Stores a box from shared memory. Nothing is written outside of the tensor.
__device__ __forceinline__ void tma_store(const CUtensorMap& map,
                                          const Coordinates& at,
                                          const std::byte* from) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
          &map),
      "r"(shared_address(from)),
      "r"(at.column),
      "r"(at.row),
      "r"(at.strip),
      "r"(at.matrix)
      : "memory");
}
// Adds a box to the tensor. The L2 cache adds.
__device__ __forceinline__ void tma_reduce_add(const CUtensorMap& map,
                                               const Coordinates& at,
                                               const std::byte* from) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.bulk_group"
      " [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
      "r"(shared_address(from)),
      "r"(at.column),
      "r"(at.row),
      "r"(at.strip),
      "r"(at.matrix)
      : "memory");
}
// Closes a bulk group: this thread's stores since the last commit.
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Waits until shared memory was read by all but the last kPending bulk groups of this thread.
template <int kPending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
// Waits until all bulk groups of this thread are written.
__device__ __forceinline__ void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace weft::kernels::cuda::hopper
