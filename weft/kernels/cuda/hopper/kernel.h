// A block computes tiles of 128 x kColumns. One warp of it asks the copy engine for slices of 64 in
// d of both factors, as far ahead as the ring of buffers allows, also into the tiles to come; two
// warpgroups multiply. A result goes through shared memory and the copy engine again.
//
// Rows of experts: both groups share a tile, 64 rows each. Its sums are long, and its result is
// small. Gradients of weights have the larger results, in fp32, and may sum over few rows: there
// the groups take the tiles in turns, and while one writes its result the other multiplies.
//
// Two blocks are a cluster: of the second factor, which both need, each loads half into the shared
// memory of both. So a buffer is free when its readers in both blocks are done with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "weft/kernels/cuda/hopper/block.h"
#include "weft/kernels/cuda/hopper/epilogue.h"

namespace weft::kernels::cuda::hopper {

template <Grouped kGrouped>
__device__ bool is_nothing(const Tile& tile, const Work& work) {
  return kGrouped == Grouped::Sums && tile.depth == 0 && work.write == Write::Accumulate;
}
__device__ inline int slices_of(const Tile& tile) { return (tile.depth + kDepth - 1) / kDepth; }
// Buffers of the ring that a tile takes: for what its sums begin with, before its slices.
template <typename Kind, int kColumns>
__device__ int old_of(const Tile& tile, const Work& work) {
  if (Kind::kGrouped == Grouped::Rows || tile.depth == 0) return 0;
  return put_of(tile, work) == Put::WriteWithOld ? kColumns / kOldColumns : 0;
}
template <typename Kind, int kColumns>
__device__ int buffers_of(const Tile& tile, const Work& work) {
  return old_of<Kind, kColumns>(tile, work) + slices_of(tile);
}

// Asks for what a tile needs. One copy brings a factor, or half of it: small ones cost as much.
template <typename Kind, int kColumns, int kBlocks>
struct Loader {
  Shared<Kind, kColumns>& shared;
  const Maps& maps;
  const Tile& tile;
  int rank;

  __device__ void load_a(int stage, int depth) const {
    At at{depth, tile.first_row + tile.row, 0, 0};
    if constexpr (Kind::kA == SumOver::Rows) {
      at = {0, tile.first_row + depth, tile.row / kBoxColumns, 0};
    }
    copy_in(shared.a[stage], maps.a, at, shared.full[stage]);
  }
  __device__ void load_b(int stage, int depth, int half, bool to_all) const {
    const int column = tile.column_tile * kColumns;
    At at{depth, column + half * (kColumns / 2), 0, tile.expert};
    if constexpr (Kind::kB == SumOver::Rows) {
      at = {0, depth + half * kHalfDepth, column / kBoxColumns, tile.expert};
    }
    if constexpr (Kind::kGrouped == Grouped::Sums) {
      at.row += tile.first_row;
      at.matrix = 0;
    }
    std::byte* to = shared.b[stage] + half * kHalfOfB<kColumns>;
    if (to_all) {
      copy_in_all(to, maps.b, at, shared.full[stage], (1 << kBlocks) - 1);
    } else {
      copy_in(to, maps.b, at, shared.full[stage]);
    }
  }
  // 64 columns of what is there: the upper rows to where the first factor lies, the lower to the
  // second.
  __device__ void load_old(int stage, int part) const {
    arrive_expecting(shared.full[stage], 2 * kOldBoxes * kBox);
#pragma unroll
    for (int box = 0; box < kOldBoxes; ++box) {
      At at{tile.column_tile * kColumns + part * kOldColumns + box * kSumColumns,
            tile.row,
            0,
            tile.expert};
      copy_in(shared.a[stage] + box * kBox, maps.c, at, shared.full[stage]);
      at.row += kBoxRows;
      copy_in(shared.b[stage] + box * kBox, maps.c, at, shared.full[stage]);
    }
  }
  __device__ void load(int stage, int depth) const {
    arrive_expecting(shared.full[stage], kStageBytes<kColumns>);
    const bool shares_b = kBlocks > 1 && tile.shares_b;
    load_a(stage, depth);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (!shares_b || half == rank) load_b(stage, depth, half, shares_b);
    }
  }
};

// One warp.
template <typename Kind, int kColumns, int kBlocks>
__device__ void load_tiles(Shared<Kind, kColumns>& shared, const Maps& maps, const Work& work) {
  Walk<Kind::kGrouped, kBlocks> walk(work);
  Ring<kStages<Kind, kColumns>> ring;
  Tile tile;
  while (walk.next(tile)) {
    const Loader<Kind, kColumns, kBlocks> loader{shared, maps, tile, walk.rank()};
    if (threadIdx.x % 32 == 0) {
      for (int part = 0; part < old_of<Kind, kColumns>(tile, work); ++part, ring.advance()) {
        wait(shared.empty[ring.stage], ring.round ^ 1);
        loader.load_old(ring.stage, part);
      }
      for (int slice = 0; slice < slices_of(tile); ++slice, ring.advance()) {
        wait(shared.empty[ring.stage], ring.round ^ 1);
        loader.load(ring.stage, slice * kDepth);
      }
    }
    __syncwarp();
  }
}

template <int kBlocks, typename Kind, int kColumns>
__device__ __forceinline__ void release(Shared<Kind, kColumns>& shared, int stage, int lane) {
  if (lane < kBlocks) arrive_at(shared.empty[stage], lane);
}

// Behind the expert's last row lie rows of others: what they would add is made zero, in both
// factors, since zero times infinity is not zero.
template <int kColumns>
__device__ void clear_behind(Shared<Wgrad, kColumns>& shared,
                             int stage,
                             int rows,
                             const Multiplier& own) {
  own.meet_group();  // what the buffer held before may have been read by any of the group
  const auto clear = [&](std::byte* box, int from, int box_rows) {
    for (int at = max(from, 0) * kBoxRow + own.thread * 16; at < box_rows * kBoxRow;
         at += kGroupThreads * 16) {
      *reinterpret_cast<uint4*>(box + at) = uint4{};
    }
  };
  for (int box = 0; box < kBoxesOfA; ++box) clear(shared.a[stage] + box * kBox, rows, kBoxRows);
  for (int half = 0; half < 2; ++half) {
    for (int box = 0; box < kBoxesOfB<kColumns>; ++box) {
      clear(shared.b[stage] + half * kHalfOfB<kColumns> + box * (kBox / 2),
            rows - half * kHalfDepth,
            kHalfDepth);
    }
  }
  show_to_engines();
  own.meet_group();
}

// Waits for the slice that the ring is at, and for its zeros.
template <typename Kind, int kColumns>
__device__ __forceinline__ void await_slice(Shared<Kind, kColumns>& shared,
                                            const Ring<kStages<Kind, kColumns>>& ring,
                                            const Tile& tile,
                                            int slice,
                                            const Multiplier& own) {
  wait(shared.full[ring.stage], ring.round);
  if constexpr (Kind::kGrouped == Grouped::Sums) {
    const int rows = tile.depth - slice * kDepth;
    if (rows < kDepth) clear_behind(shared, ring.stage, rows, own);
  }
}

// Where the second factor of product i of a slice lies, in units of 16 bytes.
template <SumOver kB, int kColumns>
__device__ constexpr int step_of_b(int i) {
  if constexpr (kB == SumOver::Columns) return i * kStep<kB>;
  constexpr int kSteps = kHalfDepth / kStepDepth;
  return i / kSteps * (kHalfOfB<kColumns> / 16) + i % kSteps * kStep<kB>;
}

// The tiles that are this group's: all of the block's, or every second one of them.
template <typename Kind, int kColumns, int kBlocks>
class GroupWalk {
 public:
  __device__ GroupWalk(Shared<Kind, kColumns>& shared, const Multiplier& own, const Work& work)
      : shared_(shared), own_(own), work_(work), walk_(work), parity_(own.group == 0 ? 1 : 0) {}

  Ring<kStages<Kind, kColumns>> ring;

  // False where there are no more. The ring passes over the slices of the other group's tiles.
  __device__ bool first(Tile& tile) {
    return walk_.next(tile) && (!kTurns || own_.group == 0 || skip(tile));
  }
  __device__ bool next(Tile& tile) { return walk_.next(tile) && (!kTurns || skip(tile)); }

  // Products are asked for in turns. The first turn of group 0 is there at once. Every phase of a
  // barrier is waited for, also where nothing depends on it.
  __device__ void await_turn() {
    if constexpr (kTurns) {
      wait(shared_.near[own_.group], parity_);
      wait(shared_.turn[own_.group], parity_);
      parity_ ^= 1;
    }
  }
  __device__ void end_turn() const {
    if constexpr (kTurns) {
      __syncwarp();
      if (own_.lane == 0) arrive(shared_.turn[1 - own_.group]);
    }
  }

  // Of a buffer only the phase that is under way and the one before are told apart. So what lies in
  // the ring behind the slices of the other group is waited for when that has its last one.
  __device__ void await_near() {
    if constexpr (kTurns) wait(shared_.near[own_.group], parity_);
  }
  // By every thread, since each may have cleared some of that slice. The turn orders this too, by
  // a thread of each warp, but compute-sanitizer's racecheck does not follow it.
  __device__ void come_near() const {
    if constexpr (kTurns) arrive(shared_.near[1 - own_.group]);
  }

 private:
  static constexpr bool kTurns = Kind::kSharing == Sharing::Turns;

  __device__ bool skip(Tile& tile) {
    ring.skip(buffers_of<Kind, kColumns>(tile, work_));
    return walk_.next(tile);
  }

  Shared<Kind, kColumns>& shared_;
  const Multiplier& own_;
  const Work& work_;
  Walk<Kind::kGrouped, kBlocks> walk_;
  std::uint32_t parity_;
};

// Asks for the products of all slices of a tile; those of the last are still under way, and its
// buffer not released.
template <typename Kind, int kColumns, int kBlocks>
__device__ __forceinline__ void multiply_slices(Sums<Kind, kColumns>& sums,
                                                Shared<Kind, kColumns>& shared,
                                                GroupWalk<Kind, kColumns, kBlocks>& walk,
                                                const Tile& tile,
                                                bool adds,
                                                const Multiplier& own) {
  Ring<kStages<Kind, kColumns>>& ring = walk.ring;
  const int slices = slices_of(tile);
  int slice = 0, before = 0;
  do {
    await_slice<Kind>(shared, ring, tile, slice, own);
    if (slice == slices - 1) walk.come_near();
    const std::uint64_t a =
        slice_at<Kind::kA>(shared.a[ring.stage] + own.first_row<Kind>() * kBoxRow);
    const std::uint64_t b = slice_at<Kind::kB>(shared.b[ring.stage], kHalfDepth);
    begin_products();
#pragma unroll
    for (int i = 0; i < kDepth / kStepDepth; ++i) {
#pragma unroll
      for (int half = 0; half < kHalves<Kind>; ++half) {
        multiply<Kind::kA, Kind::kB>(sums[half],
                                     a + half * (kBox / 16) + i * kStep<Kind::kA>,
                                     b + step_of_b<Kind::kB, kColumns>(i),
                                     adds || slice + i > 0);
      }
    }
    end_batch();
    wait_for_products<1>();
    if (slice > 0) release<kBlocks>(shared, before, own.lane);
    before = ring.stage;
    ring.advance();
  } while (++slice < slices);
}

template <typename Kind, int kColumns>
__device__ __forceinline__ void settle(Sums<Kind, kColumns>& sums) {
#pragma unroll
  for (int half = 0; half < kHalves<Kind>; ++half) settle(sums[half]);
}

// Where there is nothing to multiply, the other block may still load for both.
template <typename Kind, int kColumns, int kBlocks>
__device__ void pass_buffers(Shared<Kind, kColumns>& shared,
                             Ring<kStages<Kind, kColumns>>& ring,
                             int buffers,
                             const Multiplier& own) {
  for (int i = 0; i < buffers; ++i, ring.advance()) {
    wait(shared.full[ring.stage], ring.round);
    __syncwarp();
    release<kBlocks>(shared, ring.stage, own.lane);
  }
}

template <typename Kind, int kColumns>
__device__ __forceinline__ void begin_with_zero(Sums<Kind, kColumns>& sums) {
#pragma unroll
  for (int half = 0; half < kHalves<Kind>; ++half) {
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) sums[half][i] = 0;
  }
}
template <typename Kind, int kColumns, int kBlocks>
__device__ __forceinline__ void begin_with_old(Sums<Kind, kColumns>& sums,
                                               Shared<Kind, kColumns>& shared,
                                               GroupWalk<Kind, kColumns, kBlocks>& walk,
                                               const Multiplier& own) {
  static_assert(kColumns / kOldColumns <= kStages<Kind, kColumns>);
  Ring<kStages<Kind, kColumns>>& ring = walk.ring;
  walk.await_near();
#pragma unroll
  for (int part = 0; part < kColumns / kOldColumns; ++part, ring.advance()) {
    wait(shared.full[ring.stage], ring.round);
#pragma unroll
    for (int box = 0; box < kOldBoxes; ++box) {
      const int at = part * (kOldColumns / 2) + box * (kSumColumns / 2);
      get_box(sums[0] + at, shared.a[ring.stage] + box * kBox, own);
      get_box(sums[1] + at, shared.b[ring.stage] + box * kBox, own);
    }
    show_to_engines();
    __syncwarp();
    release<kBlocks>(shared, ring.stage, own.lane);
  }
}

// Sets what the products of a tile are added to, and waits for the turn of the group. Of experts'
// rows the first product assigns.
template <typename Kind, int kColumns, int kBlocks>
__device__ __forceinline__ void begin_tile(Sums<Kind, kColumns>& sums,
                                           Shared<Kind, kColumns>& shared,
                                           GroupWalk<Kind, kColumns, kBlocks>& walk,
                                           const Tile& tile,
                                           const Work& work,
                                           const Multiplier& own) {
  if constexpr (Kind::kGrouped == Grouped::Rows) {
    if (tile.depth == 0) begin_with_zero<Kind, kColumns>(sums);
    walk.await_turn();
  } else if (const Put put = put_of(tile, work); put == Put::AddInCache) {
    walk.await_turn();
    // The cache adds more when fewer ask it at once; and the tile before may have used the buffers
    // in another way.
    if (own.leads()) wait_until_read<0>();
  } else {
    if (put == Put::Write) {
      if (tile.depth == 0) begin_with_zero<Kind, kColumns>(sums);
    } else {
      begin_with_old<Kind, kColumns, kBlocks>(sums, shared, walk, own);
    }
    walk.await_turn();
  }
  settle<Kind, kColumns>(sums);
}

template <typename Kind, int kColumns, int kBlocks>
__device__ void multiply_tiles(Shared<Kind, kColumns>& shared, const Maps& maps, const Work& work) {
  using Writer = std::conditional_t<Kind::kGrouped == Grouped::Rows,
                                    RowWriter<Kind, kColumns>,
                                    SumWriter<Kind, kColumns>>;
  const Multiplier own;
  GroupWalk<Kind, kColumns, kBlocks> walk(shared, own, work);
  Writer writer(shared, maps, work);
  Tile tile;
  bool more = walk.first(tile);
  while (more) {
    const Tile now = tile;
    if (now.row + own.first_row<Kind>() >= now.height || now.column_tile * kColumns >= work.n ||
        is_nothing<Kind::kGrouped>(now, work)) {
      walk.await_turn();
      pass_buffers<Kind, kColumns, kBlocks>(shared,
                                            walk.ring,
                                            buffers_of<Kind, kColumns>(now, work),
                                            own);
      walk.come_near();
      walk.end_turn();
      more = walk.next(tile);
      continue;
    }
    Sums<Kind, kColumns> sums;
    begin_tile<Kind, kColumns, kBlocks>(sums, shared, walk, now, work, own);
    if (now.depth > 0) {
      const bool adds = Kind::kGrouped == Grouped::Sums && put_of(now, work) == Put::WriteWithOld;
      multiply_slices<Kind, kColumns, kBlocks>(sums, shared, walk, now, adds, own);
      walk.end_turn();
      constexpr int kRing = kStages<Kind, kColumns>;
      const int last = (walk.ring.stage + kRing - 1) % kRing;
      more = walk.next(tile);  // while the last products are under way
      wait_for_products<0>();
      settle<Kind, kColumns>(sums);
      release<kBlocks>(shared, last, own.lane);
    } else {
      walk.come_near();
      walk.end_turn();
      more = walk.next(tile);
    }
    writer.write(sums, now, own);
  }
  if (own.leads()) wait_until_written();
}

template <int kBlocks>
__device__ void meet_all() {
  if constexpr (kBlocks > 1) {
    meet_cluster();
  } else {
    __syncthreads();
  }
}

template <typename Kind, int kColumns, int kBlocks>
__global__ void __launch_bounds__(kThreads, 1)
    grouped_product(const __grid_constant__ Maps maps, const __grid_constant__ Work work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) std::byte memory[];
  auto& shared = *reinterpret_cast<Shared<Kind, kColumns>*>(memory);
  if (threadIdx.x == 0) {
    prefetch(maps.a);
    prefetch(maps.b);
    prefetch(maps.c);
    for (int stage = 0; stage < kStages<Kind, kColumns>; ++stage) {
      init(shared.full[stage], 1);
      init(shared.empty[stage], kBlocks * kWarpsOfTile<Kind>);
    }
    for (int group = 0; group < kGroups; ++group) {
      init(shared.turn[group], kGroupThreads / 32);
      init(shared.near[group], kGroupThreads);
    }
    publish_barriers();
  }
  meet_all<kBlocks>();
  await_kernel_before();
  if (threadIdx.x >= kMultiplyThreads) {
    give_registers<40>();
    if (threadIdx.x < kMultiplyThreads + 32) {
      load_tiles<Kind, kColumns, kBlocks>(shared, maps, work);
    }
  } else {
    take_registers<232>();
    multiply_tiles<Kind, kColumns, kBlocks>(shared, maps, work);
  }
  // A block that ends has no shared memory to write to, nor barriers to arrive at.
  meet_all<kBlocks>();
#else
  __trap();
#endif
}

}  // namespace weft::kernels::cuda::hopper
