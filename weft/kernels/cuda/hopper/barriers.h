// Synchronisation of the Hopper kernel as PTX: mbarriers, named barriers, clusters, dependent
// launches and registers. Blocks of a cluster see each other's shared memory: an object there has
// the same offset in each.
//
// Compiled for sm_90a alone; a kernel for other cards must not call it.
#pragma once

#include <cstdint>

namespace weft::kernels::cuda::hopper {

__device__ __forceinline__ std::uint32_t shared_address(const void* object) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(object));
}

// Programmatic dependent launch: waits until the previous kernel of the stream is over. What it
// wrote can be read then.
__device__ __forceinline__ void wait_for_previous_kernel() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// An mbarrier. A phase completes when all its arrivals and all its expected bytes have come; then
// the next phase begins.
using Barrier = std::uint64_t;

__device__ __forceinline__ void mbarrier_init(Barrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
               "r"(arrivals)
               : "memory");
}
// Called between the last mbarrier_init and the first cluster_sync.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Arrives once, and adds `bytes` to those that the phase expects.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(Barrier& barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
      "r"(bytes)
      : "memory");
}
// Arrives at this barrier of block `rank` of the cluster, without release semantics for the
// cluster. The arrival stands for reads by wgmmas that are over. A release waits for far more: it
// took a third of the rate.
__device__ __forceinline__ void mbarrier_arrive_cluster(Barrier& barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}\n" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}
// Arrives at a barrier of this block.
__device__ __forceinline__ void mbarrier_arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier))
               : "memory");
}
// Waits until the phase of this parity completes. Parity 1 of a new barrier counts as complete.
__device__ __forceinline__ void mbarrier_wait(Barrier& barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@!complete bra again;\n}\n" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

// Synchronises all threads of all blocks of the cluster.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// Synchronises `threads` threads of a block. Barrier 0 is the one of __syncthreads.
__device__ __forceinline__ void named_barrier_sync(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// Makes this thread's writes to shared memory visible to TMA and wgmma, once the next barrier has
// ordered the threads.
__device__ __forceinline__ void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// setmaxnreg moves registers between the warpgroups of a block. All threads of a warpgroup call it.
template <int kRegisters>
__device__ __forceinline__ void warpgroup_reg_dealloc() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void warpgroup_reg_alloc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace weft::kernels::cuda::hopper
