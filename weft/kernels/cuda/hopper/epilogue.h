// Epilogues: accumulators leave through boxes in shared memory, which TMA stores.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "weft/kernels/cuda/hopper/pipeline.h"
#include "weft/kernels/cuda/hopper/tma.h"

namespace weft::kernels::cuda::hopper {

using BFloat16 = __nv_bfloat16;

__device__ __forceinline__ std::uint32_t pair_of(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

// Swizzled offset of the 16 byte piece `piece` of a row of a box.
__device__ __forceinline__ int swizzled(int row, int piece) {
  return row * kBoxRowBytes + ((piece ^ (row & 7)) << 4);
}

// Writes 64 columns as bf16, from 32 accumulators of a thread.
__device__ __forceinline__ void write_box(std::byte* box,
                                          const float* acc,
                                          const Consumer& consumer) {
  const int row = consumer.warp * 16 + consumer.lane % 16;
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    const float* from = acc + pair * 8;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     shared_address(box + swizzled(row, pair * 2 + consumer.lane / 16))),
                 "r"(pair_of(from[0], from[1])),
                 "r"(pair_of(from[2], from[3])),
                 "r"(pair_of(from[4], from[5])),
                 "r"(pair_of(from[6], from[7]))
                 : "memory");
  }
}
// Visits 32 columns of fp32, 16 of a thread. Odd rows go in another order than even ones, so that
// no two threads want the same bank.
template <typename Visit>
__device__ __forceinline__ void visit_box32(std::byte* box,
                                            const Consumer& consumer,
                                            const Visit& visit) {
  const int row = consumer.warp * 16 + consumer.lane / 4;
  const bool odd = row % 2 == 1;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int piece = (odd ? i ^ 2 : i) * 2 + consumer.lane % 4 / 2;
    std::byte* at = box + swizzled(row, piece) + consumer.lane % 2 * 8;
    visit(i,
          odd,
          *reinterpret_cast<float2*>(at),
          *reinterpret_cast<float2*>(at + 8 * kBoxRowBytes));
  }
}
__device__ __forceinline__ void write_box32(std::byte* box,
                                            const float* acc,
                                            const Consumer& consumer) {
  visit_box32(box, consumer, [&](int i, bool odd, float2& upper, float2& lower) {
    const float *even_from = acc + i * 4, *odd_from = acc + (i ^ 2) * 4;
    float value[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) value[j] = odd ? odd_from[j] : even_from[j];
    upper = {value[0], value[1]};
    lower = {value[2], value[3]};
  });
}
__device__ __forceinline__ void read_box32(float* acc, std::byte* box, const Consumer& consumer) {
  float2 got[4][2];
  bool is_odd = false;
  visit_box32(box, consumer, [&](int i, bool odd, const float2& upper, const float2& lower) {
    got[i][0] = upper;
    got[i][1] = lower;
    is_odd = odd;
  });
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float2 value = is_odd ? got[i ^ 2][h] : got[i][h];
      acc[i * 4 + h * 2] = value.x;
      acc[i * 4 + h * 2 + 1] = value.y;
    }
  }
}

// Copies the first `rows` rows of a box to the result: the rest belongs to another expert.
__device__ inline void copy_rows(const Problem& problem,
                                 std::int64_t first_row,
                                 int column,
                                 int rows,
                                 const std::byte* box,
                                 const Consumer& consumer) {
  constexpr int kPieces = kBoxRowBytes / 16, kOfPiece = 16 / int(sizeof(BFloat16));
  BFloat16* c = reinterpret_cast<BFloat16*>(problem.c) + first_row * problem.c_stride + column;
  for (int at = consumer.thread; at < rows * kPieces; at += kWarpgroupThreads) {
    const int row = at / kPieces, piece = at % kPieces;
    if (column + piece * kOfPiece >= problem.n) continue;
    *reinterpret_cast<uint4*>(c + row * problem.c_stride + piece * kOfPiece) =
        *reinterpret_cast<const uint4*>(box + swizzled(row, piece));
  }
}

// Stores bf16 rows of experts, a box at a time.
template <typename T>
class RowEpilogue {
 public:
  __device__ RowEpilogue(SharedStorage<T>& shared, const TensorMaps& maps, const Problem& problem)
      : shared_(shared), maps_(maps), problem_(problem) {}

  __device__ __forceinline__ void store(const typename T::Accumulators& acc,
                                        const WorkTile& tile,
                                        const Consumer& consumer) {
#pragma unroll
    for (int mma = 0; mma < T::kMmas; ++mma) {
      const int row = tile.row + consumer.first_row<T>() + mma * kMmaM;
      if (mma > 0 && row >= tile.height) break;  // the caller looked at the first
      store_rows(acc[mma], tile, row, consumer);
    }
  }

 private:
  __device__ __forceinline__ void store_rows(const float (&acc)[T::kAccumulators],
                                             const WorkTile& tile,
                                             int row,
                                             const Consumer& consumer) {
    const int rows = tile.height - row;  // the expert's
#pragma unroll
    for (int strip = 0; strip < T::kTile.n / kBoxColumns; ++strip) {
      const int column = tile.column_tile * T::kTile.n + strip * kBoxColumns;
      if (column >= problem_.n) break;
      std::byte* box = shared_.epilogue[consumer.group][boxes_++ % T::kEpilogueBoxes];
      if (consumer.leads()) tma_store_wait_read<T::kEpilogueBoxes - 1>();
      consumer.warpgroup_sync();
      write_box(box, acc + strip * (kBoxColumns / 2), consumer);
      fence_async_proxy();
      consumer.warpgroup_sync();
      if (rows < kBoxRows) {
        copy_rows(problem_, tile.first_row + row, column, rows, box, consumer);
      } else if (consumer.leads()) {
        tma_store(maps_.c, Coordinates{column, tile.first_row + row, 0, 0}, box);
      }
      if (consumer.leads()) tma_store_commit();
    }
  }

  SharedStorage<T>& shared_;
  const TensorMaps& maps_;
  const Problem& problem_;
  unsigned boxes_ = 0;  // written so far
};

// Stores fp32 weight gradients, or has the cache add them. A store takes two boxes beside each
// other, a reduction one.
template <typename T>
class WgradEpilogue {
 public:
  __device__ WgradEpilogue(SharedStorage<T>& shared, const TensorMaps& maps, const Problem& problem)
      : shared_(shared), maps_(maps), problem_(problem) {}

  __device__ __forceinline__ void store(const typename T::Accumulators& acc,
                                        const WorkTile& tile,
                                        const Consumer& consumer) const {
    if (store_of(tile, problem_) == Store::Reduce) {
      store_with<1>(acc, tile, consumer, tma_reduce_add);
    } else {
      store_with<2>(acc, tile, consumer, tma_store);
    }
  }

 private:
  template <int kBoxes, typename Send>
  __device__ __forceinline__ void store_with(const typename T::Accumulators& acc,
                                             const WorkTile& tile,
                                             const Consumer& consumer,
                                             const Send& send) const {
    constexpr int kBuffers = T::kEpilogueBoxes / kBoxes;
    constexpr int kWidth = kBoxes * kBoxColumns32;  // columns of a piece
    constexpr int kOfMma = T::kTile.n / kWidth, kPieces = T::kMmas * kOfMma;
    static_assert(kPieces % kBuffers == 0);
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      if (consumer.leads()) tma_store_wait_read<kBuffers - 1>();
      consumer.warpgroup_sync();
      std::byte* boxes = shared_.epilogue[consumer.group][piece % kBuffers * kBoxes];
      const int column = tile.column_tile * T::kTile.n + piece % kOfMma * kWidth;
      const int row = tile.row + piece / kOfMma * kMmaM;
      const bool inside = column < problem_.n && row < tile.height;
      if (inside) {
        const float* from = acc[piece / kOfMma] + piece % kOfMma * (kWidth / 2);
#pragma unroll
        for (int box = 0; box < kBoxes; ++box) {
          write_box32(boxes + box * kBoxBytes, from + box * (kBoxColumns32 / 2), consumer);
        }
        fence_async_proxy();
      }
      consumer.warpgroup_sync();
      if (!consumer.leads()) continue;
      for (int box = 0; inside && box < kBoxes; ++box) {
        send(maps_.c,
             Coordinates{column + box * kBoxColumns32, row, 0, tile.expert},
             boxes + box * kBoxBytes);
      }
      tma_store_commit();  // also an empty group: tma_store_wait_read counts groups
    }
  }

  SharedStorage<T>& shared_;
  const TensorMaps& maps_;
  const Problem& problem_;
};

}  // namespace weft::kernels::cuda::hopper
