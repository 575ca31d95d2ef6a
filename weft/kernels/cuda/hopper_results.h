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

// Writes the sums of a tile, or adds them to what is there, some boxes beside each other at a time.
//
// The copy engine can add by itself, but the cache takes no more than 1.2 TB/s of that, and 1.9 of
// what is fetched and written. Where a sum is long, products hide the one, and the other is in
// their way; so what is there is fetched for short sums alone: the first of it while the products
// are under way, the rest when a buffer is free.
template <typename Kind, int kColumns>
class SumWriter {
 public:
  __device__ SumWriter(Shared<Kind, kColumns>& shared, const Maps& maps, const Work& work)
      : shared_(shared), maps_(maps), work_(work) {}

  // Before the products of the tile.
  __device__ void prepare(const Tile& tile, const Multiplier& own) {
    if (work_.write == Write::Assign || !own.leads()) return;
    using Pairs = Pieces<Put::AddToFetched>;
    wait_until_read<0>();  // the tile before may have used the buffers in another way
    if (!fetches(tile)) return;
    for (int piece = 0; piece < Pairs::kBuffers; ++piece) fetch(tile, piece, own);
    for (int piece = Pairs::kBuffers; piece < Pairs::kCount; ++piece) {
      for (int box = 0; Pairs::is_there(tile, work_, piece) && box < Pairs::kBoxes; ++box) {
        prefetch_box(maps_.c, Pairs::place(tile, piece, box));
      }
    }
  }
  __device__ __forceinline__ void write(const Sums<Kind, kColumns>& sums,
                                        const Tile& tile,
                                        const Multiplier& own) {
    if (work_.write == Write::Assign) return put<Put::Write>(sums, tile, own);
    if (!fetches(tile)) return put<Put::AddInCache>(sums, tile, own);
    put<Put::AddToFetched>(sums, tile, own);
    fetched_ += Pieces<Put::AddToFetched>::kCount;
  }

 private:
  enum class Put { Write, AddToFetched, AddInCache };
  static constexpr int kShortSum = 512;

  // What a tile is put in: one box at a time where the cache adds, else two.
  template <Put kPut>
  struct Pieces {
    static constexpr int kBoxes = kPut == Put::AddInCache ? 1 : 2;
    static constexpr int kBuffers = kBoxesOfC<Kind> / kBoxes;
    static constexpr int kWidth = kBoxes * kSumColumns;  // columns
    static constexpr int kOfHalf = kColumns / kWidth, kCount = kHalves<Kind> * kOfHalf;
    static_assert(kCount % kBuffers == 0);

    __device__ static At place(const Tile& tile, int piece, int box) {
      return {tile.column_tile * kColumns + piece % kOfHalf * kWidth + box * kSumColumns,
              tile.row + piece / kOfHalf * kBoxRows,
              0,
              tile.expert};
    }
    __device__ static bool is_there(const Tile& tile, const Work& work, int piece) {
      const At at = place(tile, piece, 0);
      return at.column < work.n && at.row < tile.height;
    }
  };

  __device__ bool fetches(const Tile& tile) const {
    return work_.write == Write::Accumulate && tile.depth <= kShortSum;
  }
  template <Put kPut>
  __device__ std::byte* buffer(int piece, const Multiplier& own) const {
    return shared_.c[own.group][piece % Pieces<kPut>::kBuffers * Pieces<kPut>::kBoxes];
  }
  __device__ Barrier& old(int piece, const Multiplier& own) const {
    return shared_.old[own.group][piece % Pieces<Put::AddToFetched>::kBuffers];
  }
  // Where there is no such piece, the phase of the buffer is over at once.
  __device__ void fetch(const Tile& tile, int piece, const Multiplier& own) const {
    using Pairs = Pieces<Put::AddToFetched>;
    const bool there = Pairs::is_there(tile, work_, piece);
    arrive_expecting(old(piece, own), there ? Pairs::kBoxes * kBox : 0);
    for (int box = 0; there && box < Pairs::kBoxes; ++box) {
      copy_in(buffer<Put::AddToFetched>(piece, own) + box * kBox,
              maps_.c,
              Pairs::place(tile, piece, box),
              old(piece, own));
    }
  }
  // Until the buffer of the piece may be written: all that was in it has left, or what is added to
  // is in it.
  template <Put kPut>
  __device__ __forceinline__ void await_buffer(const Tile& tile,
                                               int piece,
                                               const Multiplier& own) const {
    using All = Pieces<kPut>;
    if constexpr (kPut != Put::AddToFetched) {
      if (own.leads()) wait_until_read<All::kBuffers - 1>();
      own.meet_group();
    } else {
      constexpr int kAhead = All::kBuffers - 1;
      if (piece > 0 && piece + kAhead < All::kCount && own.leads()) {
        wait_until_read<0>();
        fetch(tile, piece + kAhead, own);
      }
      wait(old(piece, own), (fetched_ + piece) / All::kBuffers & 1);
    }
  }

  template <Put kPut>
  __device__ __forceinline__ void put(const Sums<Kind, kColumns>& sums,
                                      const Tile& tile,
                                      const Multiplier& own) {
    using All = Pieces<kPut>;
    constexpr Write kWrite = kPut == Put::AddToFetched ? Write::Accumulate : Write::Assign;
#pragma unroll
    for (int piece = 0; piece < All::kCount; ++piece) {
      await_buffer<kPut>(tile, piece, own);
      std::byte* boxes = buffer<kPut>(piece, own);
      const bool there = All::is_there(tile, work_, piece);
      if (there) {
        const float* from = sums[piece / All::kOfHalf] + piece % All::kOfHalf * (All::kWidth / 2);
#pragma unroll
        for (int box = 0; box < All::kBoxes; ++box) {
          put_box<kWrite>(boxes + box * kBox, from + box * (kSumColumns / 2), own);
        }
        show_to_engines();
      }
      own.meet_group();
      if (!own.leads()) continue;
      for (int box = 0; there && box < All::kBoxes; ++box) {
        const At at = All::place(tile, piece, box);
        if constexpr (kPut == Put::AddInCache) {
          add_out(maps_.c, at, boxes + box * kBox);
        } else {
          copy_out(maps_.c, at, boxes + box * kBox);
        }
      }
      end_copies();  // also of nothing: what is waited for is counted in batches
    }
  }

  Shared<Kind, kColumns>& shared_;
  const Maps& maps_;
  const Work& work_;
  unsigned fetched_ = 0;  // pieces so far
};

}  // namespace weft::kernels::cuda::hopper
