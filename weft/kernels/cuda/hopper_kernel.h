// A block computes tiles of 128 x kColumns, one after the other. One warp of it asks the copy
// engine for slices of 64 in d of both factors, as far ahead as the ring of buffers allows, also
// into the next tile; two warpgroups multiply, 64 rows each. A result goes through shared memory
// and the copy engine again, while the next tile's slices already arrive.
//
// Two blocks are a cluster: of the second factor, which both need, each loads half into the shared
// memory of both. So a buffer is free when the readers of both blocks are done with it.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "weft/kernels/cuda/hopper_copy.h"
#include "weft/kernels/cuda/hopper_multiply.h"
#include "weft/kernels/cuda/hopper_tiles.h"

namespace weft::kernels::cuda::hopper {

using BFloat16 = __nv_bfloat16;

inline constexpr int kGroups = 2;  // warpgroups that multiply
inline constexpr int kGroupThreads = 128;
inline constexpr int kMultiplyThreads = kGroups * kGroupThreads;
inline constexpr int kThreads = kMultiplyThreads + kGroupThreads;
inline constexpr int kGroupRows = kTileRows / kGroups;
static_assert(kGroupRows == kBoxRows);

// All products of this kernel. A and B say what the factors are summed over.
struct Forward {
  static constexpr Grouped kGrouped = Grouped::Rows;
  static constexpr SumOver kA = SumOver::Columns, kB = SumOver::Columns;
};
struct Dgrad {
  static constexpr Grouped kGrouped = Grouped::Rows;
  static constexpr SumOver kA = SumOver::Columns, kB = SumOver::Rows;
};
struct Wgrad {
  static constexpr Grouped kGrouped = Grouped::Sums;
  static constexpr SumOver kA = SumOver::Rows, kB = SumOver::Rows;
};

inline constexpr int kBoxesOfA = kTileRows / kBoxRows;
template <int kColumns>
inline constexpr int kBoxesOfB = kColumns / kBoxRows;
template <int kColumns>
inline constexpr int kStageBytes = (kBoxesOfA + kBoxesOfB<kColumns>)*kBox;
template <int kColumns>
inline constexpr int kStages = 4 * kStageBytes<256> / kStageBytes<kColumns>;

template <int kColumns>
struct Shared {
  std::byte a[kStages<kColumns>][kBoxesOfA * kBox];
  std::byte b[kStages<kColumns>][kBoxesOfB<kColumns> * kBox];
  std::byte c[kGroups][2][kBox];
  Barrier full[kStages<kColumns>];   // the bytes of both factors are there
  Barrier empty[kStages<kColumns>];  // all warps that multiply, of all blocks, are done with them
};
static_assert(sizeof(Shared<256>) <= 232448 && sizeof(Shared<128>) <= 232448);

struct Maps {
  CUtensorMap a, b, c;
};

template <Grouped kGrouped>
__device__ bool is_nothing(const Tile& tile, const Work& work) {
  return kGrouped == Grouped::Sums && tile.depth == 0 && work.write == Write::Accumulate;
}
__device__ inline int slices_of(const Tile& tile) { return (tile.depth + kDepth - 1) / kDepth; }

// Asks for the slices of a tile. One copy brings a factor, or half of it: small ones cost as much.
template <typename Kind, int kColumns, int kBlocks>
struct Loader {
  Shared<kColumns>& shared;
  const Maps& maps;
  const Tile& tile;
  int rank;

  static constexpr int kHalfOfB = kBoxesOfB<kColumns> / 2 * kBox;

  __device__ void load_a(int stage, int depth) const {
    At at{depth, tile.first_row + tile.row, 0, 0};
    if constexpr (Kind::kA == SumOver::Rows) {
      at = {0, tile.first_row + depth, tile.row / kBoxColumns, 0};
    }
    copy_in(shared.a[stage], maps.a, at, shared.full[stage]);
  }
  __device__ void load_b(int stage, int depth, int half, bool to_all) const {
    const int column = tile.column_tile * kColumns + half * (kColumns / 2);
    At at{depth, column, 0, tile.expert};
    if constexpr (Kind::kB == SumOver::Rows) at = {0, depth, column / kBoxColumns, tile.expert};
    if constexpr (Kind::kGrouped == Grouped::Sums) {
      at.row += tile.first_row;
      at.matrix = 0;
    }
    std::byte* to = shared.b[stage] + half * kHalfOfB;
    if (to_all) {
      copy_in_all(to, maps.b, at, shared.full[stage], (1 << kBlocks) - 1);
    } else {
      copy_in(to, maps.b, at, shared.full[stage]);
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
__device__ void load_tiles(Shared<kColumns>& shared, const Maps& maps, const Work& work) {
  Walk<Kind::kGrouped, kBlocks> walk(work);
  Ring<kStages<kColumns>> ring;
  Tile tile;
  while (walk.next(tile)) {
    const Loader<Kind, kColumns, kBlocks> loader{shared, maps, tile, walk.rank()};
    if (threadIdx.x % 32 == 0) {
      for (int slice = 0; slice < slices_of(tile); ++slice, ring.advance()) {
        wait(shared.empty[ring.stage], ring.round ^ 1);
        loader.load(ring.stage, slice * kDepth);
      }
    }
    __syncwarp();
  }
}

// This thread's place among those that multiply.
struct Multiplier {
  int group = int(threadIdx.x) / kGroupThreads;
  int thread = int(threadIdx.x) % kGroupThreads;  // of the group
  int warp = thread / 32, lane = thread % 32;

  __device__ void meet_group() const { meet(2 + group, kGroupThreads); }
  __device__ bool leads() const { return thread == 0; }
};

template <int kBlocks, int kColumns>
__device__ __forceinline__ void release(Shared<kColumns>& shared, int stage, int lane) {
  if (lane < kBlocks) arrive_at(shared.empty[stage], lane);
}

// Behind the expert's last row lie rows of others: what they would add is made zero, in both
// factors, since zero times infinity is not zero.
template <int kColumns>
__device__ void clear_behind(Shared<kColumns>& shared, int stage, int rows) {
  const auto clear = [&](std::byte* box) {
    for (int at = rows * kBoxRow + int(threadIdx.x) * 16; at < kBox; at += kMultiplyThreads * 16) {
      *reinterpret_cast<uint4*>(box + at) = uint4{};
    }
  };
  for (int box = 0; box < kBoxesOfA; ++box) clear(shared.a[stage] + box * kBox);
  for (int box = 0; box < kBoxesOfB<kColumns>; ++box) clear(shared.b[stage] + box * kBox);
  show_to_engines();
  meet(1, kMultiplyThreads);
}

// Waits for the slice that the ring is at, and for its zeros.
template <typename Kind, int kColumns>
__device__ __forceinline__ void await_slice(Shared<kColumns>& shared,
                                            const Ring<kStages<kColumns>>& ring,
                                            const Tile& tile,
                                            int slice) {
  wait(shared.full[ring.stage], ring.round);
  if constexpr (Kind::kGrouped == Grouped::Sums) {
    const int rows = tile.depth - slice * kDepth;
    if (rows < kDepth) clear_behind(shared, ring.stage, rows);
  }
}

// Asks for the products of all slices of a tile; those of the last are still under way, and its
// buffer not released.
template <typename Kind, int kColumns, int kBlocks>
__device__ __forceinline__ void multiply_slices(Sums<kColumns>& sums,
                                                Shared<kColumns>& shared,
                                                Ring<kStages<kColumns>>& ring,
                                                const Tile& tile,
                                                const Multiplier& own) {
  const int slices = slices_of(tile);
  for (int slice = 0, before = 0; slice < slices; ++slice) {
    await_slice<Kind>(shared, ring, tile, slice);
    const std::uint64_t a = slice_at<Kind::kA>(shared.a[ring.stage] + own.group * kBox);
    const std::uint64_t b = slice_at<Kind::kB>(shared.b[ring.stage]);
    begin_products();
#pragma unroll
    for (int i = 0; i < kDepth / kStepDepth; ++i) {
      multiply<Kind::kA, Kind::kB>(sums,
                                   a + i * kStep<Kind::kA>,
                                   b + i * kStep<Kind::kB>,
                                   slice + i);
    }
    end_batch();
    wait_for_products<1>();
    if (slice > 0) release<kBlocks>(shared, before, own.lane);
    before = ring.stage;
    ring.advance();
  }
}

// Where this group has nothing to multiply, the other one and the other block still do.
template <typename Kind, int kColumns, int kBlocks>
__device__ void pass_slices(Shared<kColumns>& shared,
                            Ring<kStages<kColumns>>& ring,
                            const Tile& tile,
                            const Multiplier& own) {
  for (int slice = 0; slice < slices_of(tile); ++slice, ring.advance()) {
    await_slice<Kind>(shared, ring, tile, slice);
    __syncwarp();
    release<kBlocks>(shared, ring.stage, own.lane);
  }
}

__device__ __forceinline__ std::uint32_t pair_of(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Where the 16 byte piece `piece` of a row of a box lies.
__device__ __forceinline__ int in_box(int row, int piece) {
  return row * kBoxRow + ((piece ^ (row & 7)) << 4);
}

// 64 columns of the sums, from 32 of a thread, as bf16.
__device__ __forceinline__ void write_box(std::byte* box,
                                          const float* sums,
                                          const Multiplier& own,
                                          BFloat16) {
  const int row = own.warp * 16 + own.lane % 16;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const float* from = sums + pair * 8;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(box + in_box(row, pair * 2 + own.lane / 16))),
                 "r"(pair_of(from[0], from[1])),
                 "r"(pair_of(from[2], from[3])),
                 "r"(pair_of(from[4], from[5])),
                 "r"(pair_of(from[6], from[7]))
                 : "memory");
  }
}
// 32 columns, from 16 of a thread, as fp32. Odd rows go through them in another order than even
// ones, so that no two threads want the same bank.
__device__ __forceinline__ void write_box(std::byte* box,
                                          const float* sums,
                                          const Multiplier& own,
                                          float) {
  const int row = own.warp * 16 + own.lane / 4;
  const bool odd = row % 2 == 1;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float *even_from = sums + i * 4, *odd_from = sums + (i ^ 2) * 4;
    float value[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) value[j] = odd ? odd_from[j] : even_from[j];
    const int piece = (odd ? i ^ 2 : i) * 2 + own.lane % 4 / 2;
    std::byte* to = box + in_box(row, piece) + own.lane % 2 * 8;
    *reinterpret_cast<float2*>(to) = {value[0], value[1]};
    *reinterpret_cast<float2*>(to + 8 * kBoxRow) = {value[2], value[3]};
  }
}

// The first `rows` rows of a box of the result: the rest belongs to another expert.
__device__ inline void copy_rows(const Work& work,
                                 std::int64_t first_row,
                                 int column,
                                 int rows,
                                 const std::byte* box,
                                 const Multiplier& own) {
  constexpr int kPieces = kBoxRow / 16, kOfPiece = 16 / int(sizeof(BFloat16));
  BFloat16* c = reinterpret_cast<BFloat16*>(work.c) + first_row * work.c_stride + column;
  for (int at = own.thread; at < rows * kPieces; at += kGroupThreads) {
    const int row = at / kPieces, piece = at % kPieces;
    if (column + piece * kOfPiece >= work.n) continue;
    *reinterpret_cast<uint4*>(c + row * work.c_stride + piece * kOfPiece) =
        *reinterpret_cast<const uint4*>(box + in_box(row, piece));
  }
}

// Writes the sums of a group, of which `rows` rows are the expert's, a box at a time through two
// buffers in turn; `boxes` counts all that were written.
template <typename Kind, int kColumns>
__device__ __forceinline__ void write_sums(const Sums<kColumns>& sums,
                                           Shared<kColumns>& shared,
                                           const Maps& maps,
                                           const Work& work,
                                           const Tile& tile,
                                           const Multiplier& own,
                                           int rows,
                                           unsigned& boxes) {
  constexpr bool kRows = Kind::kGrouped == Grouped::Rows;
  using C = std::conditional_t<kRows, BFloat16, float>;
  constexpr int kResultColumns = kBoxRow / int(sizeof(C));
  const int row = tile.row + own.group * kGroupRows;
#pragma unroll
  for (int slice = 0; slice < kColumns / kResultColumns; ++slice) {
    const int column = tile.column_tile * kColumns + slice * kResultColumns;
    if (column >= work.n) break;
    std::byte* box = shared.c[own.group][boxes++ % 2];
    if (own.leads()) wait_until_read<1>();
    own.meet_group();
    write_box(box, sums + slice * (kResultColumns / 2), own, C{});
    show_to_engines();
    own.meet_group();
    if (kRows && rows < kGroupRows) {
      copy_rows(work, tile.first_row + row, column, rows, box, own);
    } else if (own.leads()) {
      const At at =
          kRows ? At{column, tile.first_row + row, 0, 0} : At{column, row, 0, tile.expert};
      if (work.write == Write::Accumulate) {
        add_out(maps.c, at, box);
      } else {
        copy_out(maps.c, at, box);
      }
    }
    if (own.leads()) end_copies();
  }
}

template <typename Kind, int kColumns, int kBlocks>
__device__ void multiply_tiles(Shared<kColumns>& shared, const Maps& maps, const Work& work) {
  const Multiplier own;
  Walk<Kind::kGrouped, kBlocks> walk(work);
  Ring<kStages<kColumns>> ring;
  Tile tile;
  unsigned boxes = 0;
  bool more = walk.next(tile);
  while (more) {
    const Tile now = tile;
    const int rows = now.height - now.row - own.group * kGroupRows;
    if (rows <= 0 || now.column_tile * kColumns >= work.n ||
        is_nothing<Kind::kGrouped>(now, work)) {
      pass_slices<Kind, kColumns, kBlocks>(shared, ring, now, own);
      more = walk.next(tile);
      continue;
    }
    Sums<kColumns> sums;
    if (now.depth == 0) {
#pragma unroll
      for (int i = 0; i < kColumns / 2; ++i) sums[i] = 0;
    }
    multiply_slices<Kind, kColumns, kBlocks>(sums, shared, ring, now, own);
    more = walk.next(tile);  // while the last products are under way
    wait_for_products<0>();
    settle(sums);
    if (now.depth > 0) {
      const int last = (ring.stage + kStages<kColumns> - 1) % kStages<kColumns>;
      release<kBlocks>(shared, last, own.lane);
    }
    write_sums<Kind>(sums, shared, maps, work, now, own, rows, boxes);
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
  Shared<kColumns>& shared = *reinterpret_cast<Shared<kColumns>*>(memory);
  if (threadIdx.x == 0) {
    prefetch(maps.a);
    prefetch(maps.b);
    prefetch(maps.c);
    for (int stage = 0; stage < kStages<kColumns>; ++stage) {
      init(shared.full[stage], 1);
      init(shared.empty[stage], kBlocks * kMultiplyThreads / 32);
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
