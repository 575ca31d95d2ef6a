// How the results of the grouped products leave a block: from registers through boxes in shared
// memory, which the copy engine writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/kernels/cuda/hopper_block.h"

namespace weft::kernels::cuda::hopper {

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
                                          const Multiplier& own) {
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
// 32 columns, from 16 of a thread, as fp32, in the place of what is in the box or added to it. Odd
// rows go through them in another order than even ones, so that no two threads want the same bank.
template <Write kWrite>
__device__ __forceinline__ void put_box(std::byte* box, const float* sums, const Multiplier& own) {
  const int row = own.warp * 16 + own.lane / 4;
  const bool odd = row % 2 == 1;
  const auto put = [](std::byte* to, float2 value) {
    float2& there = *reinterpret_cast<float2*>(to);
    if constexpr (kWrite == Write::Accumulate) {
      value.x += there.x;
      value.y += there.y;
    }
    there = value;
  };
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float *even_from = sums + i * 4, *odd_from = sums + (i ^ 2) * 4;
    float value[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) value[j] = odd ? odd_from[j] : even_from[j];
    const int piece = (odd ? i ^ 2 : i) * 2 + own.lane % 4 / 2;
    std::byte* to = box + in_box(row, piece) + own.lane % 2 * 8;
    put(to, {value[0], value[1]});
    put(to + 8 * kBoxRow, {value[2], value[3]});
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

// Writes the rows of a tile that are this group's, a box at a time through buffers in turn.
template <typename Kind, int kColumns>
class RowWriter {
 public:
  __device__ RowWriter(Shared<Kind, kColumns>& shared, const Maps& maps, const Work& work)
      : shared_(shared), maps_(maps), work_(work) {}

  __device__ void prepare(const Tile&, const Multiplier&) {}
  __device__ __forceinline__ void write(const Sums<Kind, kColumns>& sums,
                                        const Tile& tile,
                                        const Multiplier& own) {
    const int row = tile.row + own.first_row<Kind>();
    const int rows = tile.height - row;  // that are the expert's
#pragma unroll
    for (int slice = 0; slice < kColumns / kBoxColumns; ++slice) {
      const int column = tile.column_tile * kColumns + slice * kBoxColumns;
      if (column >= work_.n) break;
      std::byte* box = shared_.c[own.group][boxes_++ % kBoxesOfC<Kind>];
      if (own.leads()) wait_until_read<kBoxesOfC<Kind> - 1>();
      own.meet_group();
      write_box(box, sums[0] + slice * (kBoxColumns / 2), own);
      show_to_engines();
      own.meet_group();
      if (rows < kBoxRows) {
        copy_rows(work_, tile.first_row + row, column, rows, box, own);
      } else if (own.leads()) {
        copy_out(maps_.c, At{column, tile.first_row + row, 0, 0}, box);
      }
      if (own.leads()) end_copies();
    }
  }

 private:
  Shared<Kind, kColumns>& shared_;
  const Maps& maps_;
  const Work& work_;
  unsigned boxes_ = 0;  // written so far
};

// Writes the sums of a tile, or adds them to what is there, a pair of boxes at a time. What is
// there is fetched: the first pairs while the products are under way, the others when a buffer is
// free. (The copy engine can add by itself, but the cache takes no more than 1.2 TB/s of that,
// and 1.9 of boxes that are fetched and written.)
template <typename Kind, int kColumns>
class SumWriter {
 public:
  __device__ SumWriter(Shared<Kind, kColumns>& shared, const Maps& maps, const Work& work)
      : shared_(shared), maps_(maps), work_(work) {}

  // Before the products of the tile.
  __device__ void prepare(const Tile& tile, const Multiplier& own) {
    if (work_.write == Write::Assign || !own.leads()) return;
    wait_until_read<0>();
    for (int pair = 0; pair < kPairsOfC; ++pair) fetch(tile, pair, own);
    for (int pair = kPairsOfC; pair < kPairs; ++pair) {
      for (int box = 0; is_there(tile, pair) && box < 2; ++box) {
        prefetch_box(maps_.c, place(tile, pair, box));
      }
    }
  }
  __device__ __forceinline__ void write(const Sums<Kind, kColumns>& sums,
                                        const Tile& tile,
                                        const Multiplier& own) {
    if (work_.write == Write::Assign) {
      put<Write::Assign>(sums, tile, own);
    } else {
      put<Write::Accumulate>(sums, tile, own);
      fetched_ += kPairs;
    }
  }

 private:
  static constexpr int kOfHalf = kColumns / kPairColumns, kPairs = kHalves<Kind> * kOfHalf;
  static_assert(kPairs % kPairsOfC == 0);

  __device__ static At place(const Tile& tile, int pair, int box) {
    const int column = tile.column_tile * kColumns + pair % kOfHalf * kPairColumns;
    return {column + box * (kPairColumns / 2),
            tile.row + pair / kOfHalf * kBoxRows,
            0,
            tile.expert};
  }
  __device__ bool is_there(const Tile& tile, int pair) const {
    return tile.column_tile * kColumns + pair % kOfHalf * kPairColumns < work_.n &&
           tile.row + pair / kOfHalf * kBoxRows < tile.height;
  }
  __device__ std::byte* buffer(int pair, const Multiplier& own) const {
    return shared_.c[own.group][pair % kPairsOfC * 2];
  }
  __device__ Barrier& old(int pair, const Multiplier& own) const {
    return shared_.old[own.group][pair % kPairsOfC];
  }
  // Where there is no such pair, the phase of the buffer is over at once.
  __device__ void fetch(const Tile& tile, int pair, const Multiplier& own) const {
    const bool there = is_there(tile, pair);
    arrive_expecting(old(pair, own), there ? 2 * kBox : 0);
    for (int box = 0; there && box < 2; ++box) {
      copy_in(buffer(pair, own) + box * kBox, maps_.c, place(tile, pair, box), old(pair, own));
    }
  }

  template <Write kWrite>
  __device__ __forceinline__ void put(const Sums<Kind, kColumns>& sums,
                                      const Tile& tile,
                                      const Multiplier& own) {
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      std::byte* boxes = buffer(pair, own);
      if constexpr (kWrite == Write::Assign) {
        if (own.leads()) wait_until_read<kPairsOfC - 1>();
        own.meet_group();
      } else {
        constexpr int kAhead = kPairsOfC - 1;
        if (pair > 0 && pair + kAhead < kPairs && own.leads()) {
          wait_until_read<0>();
          fetch(tile, pair + kAhead, own);
        }
        wait(old(pair, own), (fetched_ + pair) / kPairsOfC & 1);
      }
      const bool there = is_there(tile, pair);
      if (there) {
        const float* from = sums[pair / kOfHalf] + pair % kOfHalf * (kPairColumns / 2);
        put_box<kWrite>(boxes, from, own);
        put_box<kWrite>(boxes + kBox, from + kPairColumns / 4, own);
        show_to_engines();
      }
      own.meet_group();
      if (!own.leads()) continue;
      for (int box = 0; there && box < 2; ++box) {
        copy_out(maps_.c, place(tile, pair, box), boxes + box * kBox);
      }
      end_copies();  // also of nothing: what is waited for is counted in batches
    }
  }

  Shared<Kind, kColumns>& shared_;
  const Maps& maps_;
  const Work& work_;
  unsigned fetched_ = 0;  // pairs so far
};

}  // namespace weft::kernels::cuda::hopper
