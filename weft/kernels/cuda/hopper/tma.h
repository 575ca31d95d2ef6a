// The copy engine of Hopper and the barriers in shared memory that count its bytes, as PTX. Blocks
// of a cluster see each other's shared memory: an object there has the same offset in each.
//
// Compiled for sm_90a alone; a kernel for other cards must not call it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace weft::kernels::cuda::hopper {

__device__ __forceinline__ std::uint32_t shared_address(const void* object) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(object));
}

// Until the kernel before in the stream is over and what it wrote can be read: for a kernel that
// may start beside it.
__device__ __forceinline__ void await_kernel_before() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// A phase is over when all arrivals and all bytes it waits for have come; then the next begins.
using Barrier = std::uint64_t;

__device__ __forceinline__ void init(Barrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
               "r"(arrivals)
               : "memory");
}
// Between the init of all barriers and the first meeting of the blocks.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// One arrival, and `bytes` more to wait for.
__device__ __forceinline__ void arrive_expecting(Barrier& barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
      "r"(bytes)
      : "memory");
}
// An arrival at this barrier of block `rank` of the cluster. It orders nothing of other blocks:
// what it stands for are reads by products that are over, and a release for the whole cluster would
// wait for far more (it took a third of the rate).
__device__ __forceinline__ void arrive_at(Barrier& barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}
// An arrival at a barrier of this block.
__device__ __forceinline__ void arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier))
               : "memory");
}
// Until the phase of this parity is over; of a new barrier that of parity 1 is.
__device__ __forceinline__ void wait(Barrier& barrier, std::uint32_t parity) {
  asm volatile(
      "{\n.reg .pred over;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra again;\n}\n" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

// A place in a ring of kStages buffers, and the parity of the round.
template <int kStages>
struct Ring {
  int stage = 0;
  std::uint32_t round = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      round ^= 1;
    }
  }
  __device__ __forceinline__ void skip(int places) {
    const int at = stage + places;
    stage = at % kStages;
    round ^= std::uint32_t(at / kStages) & 1;
  }
};

// All threads of all blocks of the cluster.
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// `threads` threads of a block; barrier 0 is that of __syncthreads.
__device__ __forceinline__ void meet(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// Where an element of a tensor lies, the innermost dimension first. A matrix may be cut into strips
// of columns, which are then a dimension of their own: one copy brings several.
struct At {
  int column, row, strip, matrix;
};

__device__ __forceinline__ void prefetch(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
// Copies a box into this block's shared memory; its bytes count at `full`. What lies outside of the
// tensor is zero, and counts too.
__device__ __forceinline__ void copy_in(std::byte* to,
                                        const CUtensorMap& map,
                                        const At& at,
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
// The same as copy_in into each block whose bit is set in `ranks`.
__device__ __forceinline__ void copy_in_all(std::byte* to,
                                            const CUtensorMap& map,
                                            const At& at,
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

// What this thread wrote to shared memory is seen by copies and products that are asked for after
// the next meeting.
__device__ __forceinline__ void show_to_engines() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// Copies a box from shared memory; nothing is written outside of the tensor.
__device__ __forceinline__ void copy_out(const CUtensorMap& map,
                                         const At& at,
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
// The same, added to what is there.
__device__ __forceinline__ void add_out(const CUtensorMap& map,
                                        const At& at,
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
// What this thread copied out since the last call is one batch.
__device__ __forceinline__ void end_copies() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Until shared memory was read by all but the last kPending batches of this thread.
template <int kPending>
__device__ __forceinline__ void wait_until_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
// Until all batches of this thread are written.
__device__ __forceinline__ void wait_until_written() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Registers move between the warpgroups of a block: all threads of one say what they want.
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace weft::kernels::cuda::hopper
