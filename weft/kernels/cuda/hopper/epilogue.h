// How the results of the grouped products leave a block: from registers through boxes in shared
// memory, which the copy engine writes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/kernels/cuda/hopper/block.h"

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
// 32 columns, 16 of a thread, as fp32. Odd rows go through them in another order than even ones, so
// that no two threads want the same bank.
template <typename Visit>
__device__ __forceinline__ void visit_box(std::byte* box,
                                          const Multiplier& own,
                                          const Visit& visit) {
  const int row = own.warp * 16 + own.lane / 4;
  const bool odd = row % 2 == 1;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int piece = (odd ? i ^ 2 : i) * 2 + own.lane % 4 / 2;
    std::byte* at = box + in_box(row, piece) + own.lane % 2 * 8;
    visit(i, odd, *reinterpret_cast<float2*>(at), *reinterpret_cast<float2*>(at + 8 * kBoxRow));
  }
}
__device__ __forceinline__ void put_box(std::byte* box, const float* sums, const Multiplier& own) {
  visit_box(box, own, [&](int i, bool odd, float2& upper, float2& lower) {
    const float *even_from = sums + i * 4, *odd_from = sums + (i ^ 2) * 4;
    float value[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) value[j] = odd ? odd_from[j] : even_from[j];
    upper = {value[0], value[1]};
    lower = {value[2], value[3]};
  });
}
__device__ __forceinline__ void get_box(float* sums, std::byte* box, const Multiplier& own) {
  float2 got[4][2];
  bool is_odd = false;
  visit_box(box, own, [&](int i, bool odd, const float2& upper, const float2& lower) {
    got[i][0] = upper;
    got[i][1] = lower;
    is_odd = odd;
  });
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float2 value = is_odd ? got[i ^ 2][h] : got[i][h];
      sums[i * 4 + h * 2] = value.x;
      sums[i * 4 + h * 2 + 1] = value.y;
    }
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

// Writes the sums of a tile, or has the cache add them, a piece at a time: two boxes beside each
// other, or one where the cache adds.
template <typename Kind, int kColumns>
class SumWriter {
 public:
  __device__ SumWriter(Shared<Kind, kColumns>& shared, const Maps& maps, const Work& work)
      : shared_(shared), maps_(maps), work_(work) {}

  __device__ __forceinline__ void write(const Sums<Kind, kColumns>& sums,
                                        const Tile& tile,
                                        const Multiplier& own) const {
    if (put_of(tile, work_) == Put::AddInCache) {
      put<1>(sums, tile, own, add_out);
    } else {
      put<2>(sums, tile, own, copy_out);
    }
  }

 private:
  template <int kBoxes, typename Send>
  __device__ __forceinline__ void put(const Sums<Kind, kColumns>& sums,
                                      const Tile& tile,
                                      const Multiplier& own,
                                      const Send& send) const {
    constexpr int kBuffers = kBoxesOfC<Kind> / kBoxes;
    constexpr int kWidth = kBoxes * kSumColumns;  // columns of a piece
    constexpr int kOfHalf = kColumns / kWidth, kPieces = kHalves<Kind> * kOfHalf;
    static_assert(kPieces % kBuffers == 0);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      if (own.leads()) wait_until_read<kBuffers - 1>();
      own.meet_group();
      std::byte* boxes = shared_.c[own.group][piece % kBuffers * kBoxes];
      const int column = tile.column_tile * kColumns + piece % kOfHalf * kWidth;
      const int row = tile.row + piece / kOfHalf * kBoxRows;
      const bool there = column < work_.n && row < tile.height;
      if (there) {
        const float* from = sums[piece / kOfHalf] + piece % kOfHalf * (kWidth / 2);
#pragma unroll
        for (int box = 0; box < kBoxes; ++box) {
          put_box(boxes + box * kBox, from + box * (kSumColumns / 2), own);
        }
        show_to_engines();
      }
      own.meet_group();
      if (!own.leads()) continue;
      for (int box = 0; there && box < kBoxes; ++box) {
        send(maps_.c, At{column + box * kSumColumns, row, 0, tile.expert}, boxes + box * kBox);
      }
      end_copies();  // also of nothing: what is waited for is counted in batches
    }
  }

  Shared<Kind, kColumns>& shared_;
  const Maps& maps_;
  const Work& work_;
};

}  // namespace weft::kernels::cuda::hopper
