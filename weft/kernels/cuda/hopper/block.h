// What a block of the grouped products is made of: its kinds, its shared memory and its threads.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>

#include "weft/kernels/cuda/hopper/scheduler.h"
#include "weft/kernels/cuda/hopper/tma.h"
#include "weft/kernels/cuda/hopper/wgmma.h"

namespace weft::kernels::cuda::hopper {

using BFloat16 = __nv_bfloat16;

inline constexpr int kGroups = 2;  // warpgroups that multiply
inline constexpr int kGroupThreads = 128;
inline constexpr int kMultiplyThreads = kGroups * kGroupThreads;
inline constexpr int kThreads = kMultiplyThreads + kGroupThreads;

// What the warpgroups of a block do with its tiles.
enum class Sharing { Tile, Turns };

// All products of this kernel. A and B say what the factors are summed over.
struct Forward {
  static constexpr Grouped kGrouped = Grouped::Rows;
  static constexpr Sharing kSharing = Sharing::Tile;
  static constexpr SumOver kA = SumOver::Columns, kB = SumOver::Columns;
};
struct Dgrad {
  static constexpr Grouped kGrouped = Grouped::Rows;
  static constexpr Sharing kSharing = Sharing::Tile;
  static constexpr SumOver kA = SumOver::Columns, kB = SumOver::Rows;
};
struct Wgrad {
  static constexpr Grouped kGrouped = Grouped::Sums;
  static constexpr Sharing kSharing = Sharing::Turns;
  static constexpr SumOver kA = SumOver::Rows, kB = SumOver::Rows;
};

// Columns of the tiles of results that fill them. A thread has registers for 64 x 256 sums of its
// group, or for two of 64 x 192 and no more.
template <typename Kind>
inline constexpr int kWide = Kind::kSharing == Sharing::Tile ? 256 : 192;

// Products of 64 rows that a group has of a tile, and what multiplies a slice of it.
template <typename Kind>
inline constexpr int kHalves = Kind::kSharing == Sharing::Tile ? 1 : kTileRows / kBoxRows;
template <typename Kind>
inline constexpr int kWarpsOfTile = (Kind::kSharing == Sharing::Tile ? kMultiplyThreads
                                                                     : kGroupThreads) /
                                    32;
template <typename Kind, int kColumns>
using Sums = float[kHalves<Kind>][kColumns / 2];

// Buffers of a group for results on their way.
template <typename Kind>
inline constexpr int kBoxesOfC = Kind::kSharing == Sharing::Tile ? 2 : 4;
inline constexpr int kSumColumns = kBoxRow / int(sizeof(float));  // of a box of sums
// What sums are added to comes through the ring: so many boxes beside each other in a buffer of it,
// of each half of the tile's rows.
inline constexpr int kOldBoxes = 2, kOldColumns = kOldBoxes * kSumColumns;

inline constexpr int kBoxesOfA = kTileRows / kBoxRows;
template <int kColumns>
inline constexpr int kBoxesOfB = kColumns / kBoxRows;
template <int kColumns>
inline constexpr int kStageBytes = (kBoxesOfA + kBoxesOfB<kColumns>)*kBox;
template <typename Kind, int kColumns>
inline constexpr int kStages = 4 * kStageBytes<kWide<Kind>> / kStageBytes<kColumns>;

template <typename Kind, int kColumns>
struct Shared {
  static constexpr int kRing = kStages<Kind, kColumns>;

  std::byte a[kRing][kBoxesOfA * kBox];
  std::byte b[kRing][kBoxesOfB<kColumns> * kBox];
  std::byte c[kGroups][kBoxesOfC<Kind>][kBox];
  Barrier full[kRing];    // the bytes of both factors are there
  Barrier empty[kRing];   // the warps that multiply them, of all blocks, are done
  Barrier turn[kGroups];  // the other group has asked for its products
  Barrier near[kGroups];  // the other group has its last slice
};
static_assert(sizeof(Shared<Forward, 256>) <= 232448 && sizeof(Shared<Forward, 128>) <= 232448);
static_assert(sizeof(Shared<Wgrad, 192>) <= 232448 && sizeof(Shared<Wgrad, 128>) <= 232448);

struct Maps {
  CUtensorMap a, b, c;
};

// What each block of a cluster loads of the second factor: half of its columns, or of d where its
// rows are summed over.
template <int kColumns>
inline constexpr int kHalfOfB = kBoxesOfB<kColumns>* kBox / 2;
inline constexpr int kHalfDepth = kDepth / 2;

// This thread's place among those that multiply.
struct Multiplier {
  int group = int(threadIdx.x) / kGroupThreads;
  int thread = int(threadIdx.x) % kGroupThreads;  // of the group
  int warp = thread / 32, lane = thread % 32;

  __device__ void meet_group() const { meet(2 + group, kGroupThreads); }
  __device__ bool leads() const { return thread == 0; }
  // Of the tile.
  template <typename Kind>
  __device__ int first_row() const {
    return Kind::kSharing == Sharing::Tile ? group * kBoxRows : 0;
  }
};

}  // namespace weft::kernels::cuda::hopper
