// Tiles of the attention kernels: rows of one head in shared memory, as fp32, and products of such
// tiles.
//
// A block keeps one tile of kOwn rows: queries, or keys in the gradient of keys and values. Tiles
// of kPassing rows pass by. Its threads are 16 lines of 16 lanes. Of a product, the thread in line
// y and lane x has rows y, y + 16, ... of the block's own tile, so that a row belongs to half a
// warp. Tiles are as wide as the kernel's template says. They are zero past the head's width and
// past the sequence's end, so that products need no bounds.
#pragma once

#include <cstdint>
#include <limits>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/block_sums.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/cuda/call.h"

namespace weft::kernels::cuda {

inline constexpr int kLanes = 16;
inline constexpr int kAttentionThreads = kLanes * kLanes;
inline constexpr int kOwn = 64;
inline constexpr int kPassing = 32;
inline constexpr int kThreadRows = kOwn / kLanes;
inline constexpr int kThreadColumns = kPassing / kLanes;
inline constexpr int kQuad = 4;                   // floats per read
inline constexpr int kQuadLine = kLanes * kQuad;  // columns per read of a line of threads
// padding of a row, so that the next one starts in other banks
inline constexpr int kPadding = kQuad;
inline constexpr std::int64_t kWidestHead = 256;  // limited by shared memory

struct AttentionSizes {
  std::int64_t batch;
  SequenceRows queries, keys;
  AttentionMask mask;
  int heads, groups;
  int width, value_width;  // query or key head; value head
  float scale;

  __host__ __device__ int heads_per_group() const { return heads / groups; }
  // Number of keys that a query sees, from the front. A query past the last one sees all.
  __device__ std::int64_t seen_by(std::int64_t query) const {
    const std::int64_t causal = query + 1 + keys.count - queries.count;
    return mask == AttentionMask::None ? keys.count : min(keys.count, causal);
  }
  // First query that sees a key.
  __device__ std::int64_t first_to_see(std::int64_t key) const {
    const std::int64_t causal = key - (keys.count - queries.count);
    return mask == AttentionMask::None || causal < 0 ? 0 : causal;
  }
};

__host__ __device__ inline std::int64_t own_tiles(const SequenceRows& rows) {
  return (rows.count + kOwn - 1) / kOwn;
}

// Sizes of a call with `tokens` rows.
inline AttentionSizes attention_sizes(std::int64_t tokens, const AttentionShape& shape) {
  const std::int64_t value_width = shape.value_width.value_or(shape.head_width);
  CHECK(shape.head_width <= kWidestHead && value_width <= kWidestHead,
        "attention heads of widths {} and {}, of at most {} on a GPU",
        shape.head_width,
        value_width,
        kWidestHead);
  return {.batch = tokens / shape.query_rows().each,
          .queries = shape.query_rows(),
          .keys = shape.key_rows(),
          .mask = shape.mask,
          .heads = int(shape.heads),
          .groups = int(shape.groups),
          .width = int(shape.head_width),
          .value_width = int(value_width),
          .scale = shape.scale};
}

// Widths of a kernel, multiples of kQuadLine.
template <int kQueryWidth, int kValueWidth>
struct HeadWidths {
  static_assert(kQueryWidth % kQuadLine == 0 && kValueWidth % kQuadLine == 0);
};

// Calls body(HeadWidths<...>) with the narrowest widths that hold both.
template <typename Body>
void with_widths(const AttentionSizes& sizes, Body&& body) {
  if (sizes.width <= 64 && sizes.value_width <= 64) {
    body(HeadWidths<64, 64>{});
  } else if (sizes.width <= 128 && sizes.value_width <= 128) {
    body(HeadWidths<128, 128>{});
  } else if (sizes.width <= 192 && sizes.value_width <= 128) {
    body(HeadWidths<192, 128>{});
  } else {
    body(HeadWidths<256, 256>{});
  }
}

template <int kRows, int kWidth>
struct Tile {
  static constexpr int kStride = kWidth + kPadding;
  static constexpr int kElements = kRows * kStride;

  float* data;

  __device__ float* row(int i) const { return data + i * kStride; }
  __device__ float4 quad(int i, int column) const {
    return *reinterpret_cast<const float4*>(row(i) + column);
  }
};
// Factors of the passing tile, as shared memory holds them: (own, passing).
using Weights = Tile<kOwn, kPassing>;

// Shared memory of a block, handed out in pieces.
class SharedMemory {
 public:
  __device__ explicit SharedMemory(float4* at) : at_(reinterpret_cast<float*>(at)) {}

  template <typename AnyTile>
  __device__ AnyTile tile() {
    return {take(AnyTile::kElements)};
  }
  __device__ float* take(int elements) {
    float* piece = at_;
    at_ += elements;
    return piece;
  }

 private:
  float* at_;
};

// Rows of one sequence and the columns of one head of a matrix.
template <typename T>
struct HeadRows {
  T* data;
  std::int64_t stride;
  std::int64_t rows;
  int width;

  __device__ T* row(std::int64_t i) const { return data + i * stride; }
};

template <typename T>
__device__ HeadRows<T> head_rows(const Matrix<T>& x,
                                 const SequenceRows& rows,
                                 std::int64_t sequence,
                                 int head,
                                 int width) {
  return {x.row(sequence * rows.each + rows.begin) + std::int64_t(head) * width,
          x.stride,
          rows.count,
          width};
}
// lse of the same queries.
__device__ inline float* lse_of(const Matrix<float>& lse,
                                const SequenceRows& queries,
                                std::int64_t sequence,
                                int head) {
  return lse.row(head) + sequence * queries.each + queries.begin;
}

__device__ inline int line_of_thread() { return int(threadIdx.x) / kLanes; }
__device__ inline int lane_of_thread() { return int(threadIdx.x) % kLanes; }

// Loads the rows of x from `begin` on.
template <typename T, int kRows, int kWidth>
__device__ void load_tile(const Tile<kRows, kWidth>& tile,
                          const HeadRows<T>& x,
                          std::int64_t begin) {
  for (int i = int(threadIdx.x); i < kRows * kWidth; i += kAttentionThreads) {
    const int r = i / kWidth, c = i % kWidth;
    const bool inside = begin + r < x.rows && c < x.width;
    tile.row(r)[c] = inside ? load(x.row(begin + r)[c]) : 0.0f;
  }
}

// products[i][j] = the dot product of row i of this thread in `own` and row j in `passing`.
template <int kWidth>
__device__ void dot_rows(float (&products)[kThreadRows][kThreadColumns],
                         const Tile<kOwn, kWidth>& own,
                         const Tile<kPassing, kWidth>& passing) {
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) products[i][j] = 0;
  }
#pragma unroll 2
  for (int c = 0; c < kWidth; c += kQuad) {
    float4 b[kThreadColumns];
#pragma unroll
    for (int j = 0; j < kThreadColumns; ++j) b[j] = passing.quad(lane_of_thread() + j * kLanes, c);
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
      const float4 a = own.quad(line_of_thread() + i * kLanes, c);
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) {
        float sum = products[i][j];
        sum += a.x * b[j].x;
        sum += a.y * b[j].y;
        sum += a.z * b[j].z;
        sum += a.w * b[j].w;
        products[i][j] = sum;
      }
    }
  }
}

// Part of a thread in a (kOwn, kWidth) result: its rows, and kQuad columns of each kQuadLine.
template <int kWidth>
struct ThreadSums {
  float values[kThreadRows][kWidth / kQuadLine][kQuad] = {};

  __device__ void scale_row(int i, float factor) {
#pragma unroll
    for (int c = 0; c < kWidth / kQuadLine; ++c) {
#pragma unroll
      for (int e = 0; e < kQuad; ++e) values[i][c][e] *= factor;
    }
  }
};

// sums += weights passing. Reads only weights that threads of the same line wrote.
template <int kWidth>
__device__ void add_product(ThreadSums<kWidth>& sums,
                            const Weights& weights,
                            const Tile<kPassing, kWidth>& passing) {
#pragma unroll 1
  for (int r = 0; r < kPassing; r += kQuad) {
    float w[kThreadRows][kQuad];
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
      const float4 quad = weights.quad(line_of_thread() + i * kLanes, r);
      w[i][0] = quad.x;
      w[i][1] = quad.y;
      w[i][2] = quad.z;
      w[i][3] = quad.w;
    }
#pragma unroll
    for (int n = 0; n < kQuad; ++n) {
#pragma unroll
      for (int c = 0; c < kWidth / kQuadLine; ++c) {
        const float4 b = passing.quad(r + n, c * kQuadLine + lane_of_thread() * kQuad);
#pragma unroll
        for (int i = 0; i < kThreadRows; ++i) {
          sums.values[i][c][0] += w[i][n] * b.x;
          sums.values[i][c][1] += w[i][n] * b.y;
          sums.values[i][c][2] += w[i][n] * b.z;
          sums.values[i][c][3] += w[i][n] * b.w;
        }
      }
    }
  }
}

// Writes the rows from `begin` on.
template <typename T, int kWidth>
__device__ void store_rows(const HeadRows<T>& to,
                           std::int64_t begin,
                           const ThreadSums<kWidth>& sums) {
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
    const std::int64_t row = begin + line_of_thread() + i * kLanes;
    if (row >= to.rows) continue;
#pragma unroll
    for (int c = 0; c < kWidth / kQuadLine; ++c) {
#pragma unroll
      for (int e = 0; e < kQuad; ++e) {
        const int column = c * kQuadLine + lane_of_thread() * kQuad + e;
        if (column < to.width) store(to.row(row)[column], sums.values[i][c][e]);
      }
    }
  }
}

// Grid of one block per own tile and head. Blocks with the same tile are neighbours.
inline unsigned attention_blocks(const AttentionSizes& sizes, int heads, const SequenceRows& own) {
  const std::int64_t blocks = sizes.batch * heads * own_tiles(own);
  CHECK(blocks <= std::numeric_limits<int>::max(), "{} tiles of attention", blocks);
  return static_cast<unsigned>(blocks);
}

// Tile and head of a block in such a grid.
struct Place {
  std::int64_t sequence;
  int head;
  std::int64_t tile;
};
__device__ inline Place place_of_block(const AttentionSizes& sizes, int heads) {
  const std::int64_t block = blockIdx.x, lines = sizes.batch * heads;
  return {block % lines / heads, int(block % heads), block / lines};
}

}  // namespace weft::kernels::cuda
