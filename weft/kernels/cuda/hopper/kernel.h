// The grouped GEMM of Hopper: a persistent, warp-specialised kernel. One producer warp loads
// k-blocks of both factors by TMA into the stages of shared memory; two consumer warpgroups
// multiply them by wgmma. mbarriers say which stages are full and which are empty. The epilogue
// stages results in shared memory, and TMA stores them.
//
// Forward and dgrad are cooperative: both consumers share a tile. Their sums are long and their
// results small. Wgrad is ping-pong: results are larger, in fp32, and sums may be short, so that
// one consumer multiplies while the other runs its epilogue.
//
// Two blocks form a cluster. Each loads half of b and multicasts it to both. So a stage is empty
// once its readers in both blocks are done.
#pragma once

#include <cstddef>

#include "weft/kernels/cuda/hopper/consumer.h"
#include "weft/kernels/cuda/hopper/producer.h"

namespace weft::kernels::cuda::hopper {

template <typename T>
__device__ void init_barriers(SharedStorage<T>& shared) {
  for (int stage = 0; stage < T::kStages; ++stage) {
    mbarrier_init(shared.full[stage], 1);
    mbarrier_init(shared.empty[stage], T::kTile.cluster * T::kReaderWarps);
  }
  for (int group = 0; group < kConsumers; ++group) {
    mbarrier_init(shared.issued[group], kWarpgroupWarps);
    mbarrier_init(shared.last_k_block[group], kWarpgroupThreads);
  }
  fence_mbarrier_init();
}

// Synchronises all threads that see the block's mbarriers.
template <typename T>
__device__ void sync_all() {
  if constexpr (T::kTile.cluster > 1) {
    cluster_sync();
  } else {
    __syncthreads();
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    grouped_gemm(const __grid_constant__ TensorMaps maps, const __grid_constant__ Problem problem) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::byte memory[];
  auto& shared = *reinterpret_cast<SharedStorage<T>*>(memory);
  if (threadIdx.x == 0) {
    prefetch_tensor_map(maps.a);
    prefetch_tensor_map(maps.b);
    prefetch_tensor_map(maps.c);
    init_barriers(shared);
  }
  sync_all<T>();
  wait_for_previous_kernel();
  if (threadIdx.x >= kConsumerThreads) {
    warpgroup_reg_dealloc<T::kProducerRegisters>();
    if (threadIdx.x < kConsumerThreads + 32) produce(shared, maps, problem);
  } else {
    warpgroup_reg_alloc<T::kConsumerRegisters>();
    consume(shared, maps, problem);
  }
  // A block must outlive the arrivals and loads of its cluster in its shared memory.
  sync_all<T>();
#else
  __trap();
#endif
}

}  // namespace weft::kernels::cuda::hopper
