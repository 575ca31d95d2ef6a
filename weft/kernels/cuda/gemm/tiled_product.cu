// A block computes 64 x 64 elements of the result, a thread 4 x 4 of them in registers. Both
// factors go through shared memory as fp32, in slices of 16 in d.
#include <limits>

#include "weft/kernels/cuda/gemm/tiled_product.h"

namespace weft::kernels::cuda {
namespace tiled_product_kernels {
namespace {

constexpr int kTile = 64, kDepth = 16, kThreads = 256;
// Blocks per multiprocessor: some compute while others wait for memory.
constexpr int kBlocks = 3;
constexpr int kEach = 4;  // rows and columns per thread
constexpr int kAcross = kTile / kEach;
constexpr int kPadded = kTile + 4;  // fewer bank conflicts, still aligned for float4
static_assert(kTile == kTiledRows && kAcross * kAcross == kThreads);

// Element (i, d) of a factor.
template <typename T>
struct View {
  const T* data;
  std::int64_t along, depth;  // elements from one i to the next, from one d to the next
};

// Product with known types.
template <typename A, typename B, typename C>
struct Typed {
  std::int64_t m, n, k;
  View<A> a;
  View<B> b;
  C* c;
  std::int64_t c_stride;
  Write write;
};

__host__ __device__ std::int64_t tiles_of(std::int64_t elements) {
  return (elements + kTile - 1) / kTile;
}

using Slice = float[kDepth][kPadded];

// Loads the elements from (first, depth) on, zero past the end (extent, k) of the factor.
// Neighbouring threads read neighbouring memory.
template <typename T>
__device__ void load_slice(Slice& slice,
                           const View<T>& x,
                           std::int64_t first,
                           std::int64_t extent,
                           std::int64_t depth,
                           std::int64_t k) {
  const int thread = int(threadIdx.x);
  const bool lies_along = x.along == 1;
  const int first_i = lies_along ? thread % kTile : thread / kDepth;
  const int first_d = lies_along ? thread / kTile : thread % kDepth;
  const int step_i = lies_along ? 0 : kThreads / kDepth;
  const int step_d = lies_along ? kThreads / kTile : 0;
#pragma unroll
  for (int step = 0; step < kTile * kDepth / kThreads; ++step) {
    const int i = first_i + step * step_i, d = first_d + step * step_d;
    float value = 0;
    if (first + i < extent && depth + d < k) {
      value = load(x.data[(first + i) * x.along + (depth + d) * x.depth]);
    }
    slice[d][i] = value;
  }
}

struct Four {
  float x[kEach];
};

__device__ Four four_of(const float* from) {
  const float4 x = *reinterpret_cast<const float4*>(from);
  return {{x.x, x.y, x.z, x.w}};
}

__device__ void add_slice(float (&sums)[kEach][kEach],
                          const Slice& a,
                          const Slice& b,
                          int row,
                          int column) {
#pragma unroll
  for (int d = 0; d < kDepth; ++d) {
    const Four left = four_of(&a[d][row]), right = four_of(&b[d][column]);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(left.x[i], right.x[j], sums[i][j]);
    }
  }
}

template <typename C>
__device__ void write_element(C& to, float sum, Write write) {
  store(to, write == Write::Accumulate ? load(to) + sum : sum);
}

// Computes the tile whose first element is (first_row, first_column). All threads of a block call
// it, once.
template <typename A, typename B, typename C>
__device__ void compute_tile(const Typed<A, B, C>& p,
                             std::int64_t first_row,
                             std::int64_t first_column) {
  __shared__ __align__(16) Slice a;
  __shared__ __align__(16) Slice b;
  const int row = int(threadIdx.x) / kAcross * kEach, column = int(threadIdx.x) % kAcross * kEach;
  float sums[kEach][kEach] = {};
#pragma unroll 1
  for (std::int64_t depth = 0; depth < p.k; depth += kDepth) {
    load_slice(a, p.a, first_row, p.m, depth, p.k);
    load_slice(b, p.b, first_column, p.n, depth, p.k);
    __syncthreads();
    add_slice(sums, a, b, row, column);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const std::int64_t r = first_row + row + i;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t c = first_column + column + j;
      if (r < p.m && c < p.n) write_element(p.c[r * p.c_stride + c], sums[i][j], p.write);
    }
  }
}

template <typename A, typename B, typename C>
__global__ void __launch_bounds__(kThreads, kBlocks) whole(Typed<A, B, C> p) {
  const std::int64_t column_tiles = tiles_of(p.n);
  compute_tile(p, blockIdx.x / column_tiles * kTile, blockIdx.x % column_tiles * kTile);
}

template <typename A, typename B, typename C>
__global__ void __launch_bounds__(kThreads, kBlocks)
    rows_of_experts(Typed<A, B, C> p, ExpertRows rows) {
  const std::int64_t column_tiles = tiles_of(p.n);
  const std::int64_t row_tile = blockIdx.x / column_tiles;
  if (row_tile >= rows.first_tile[rows.experts]) return;
  const std::int64_t expert = rows.expert_of(row_tile);
  const std::int64_t first = rows.first_row[expert];
  p.m = rows.first_row[expert + 1] - first;
  p.a.data += first * p.a.along;
  p.b.data += expert * p.n * p.k;
  p.c += first * p.c_stride;
  const std::int64_t tile_of_expert = row_tile - rows.first_tile[expert];
  compute_tile(p, tile_of_expert * kTile, blockIdx.x % column_tiles * kTile);
}

template <typename A, typename B>
__global__ void __launch_bounds__(kThreads, kBlocks)
    sums_of_experts(Typed<A, B, float> p, ExpertRows rows) {
  const std::int64_t column_tiles = tiles_of(p.n);
  const std::int64_t tiles = tiles_of(p.m) * column_tiles;
  const std::int64_t expert = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const std::int64_t first = rows.first_row[expert];
  p.k = rows.first_row[expert + 1] - first;
  if (p.k == 0 && p.write == Write::Accumulate) return;
  p.a.data += first * p.a.depth;
  p.b.data += first * p.b.depth;
  p.c += expert * p.m * p.n;
  compute_tile(p, tile / column_tiles * kTile, tile % column_tiles * kTile);
}

template <typename T>
View<T> view(const Factor& x) {
  const bool by_columns = x.sum_over == SumOver::Columns;
  return {.data = reinterpret_cast<const T*>(x.data),
          .along = by_columns ? x.stride : 1,
          .depth = by_columns ? 1 : x.stride};
}

template <typename A, typename B, typename C>
Typed<A, B, C> typed(const Product& p) {
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .a = view<A>(p.a),
          .b = view<B>(p.b),
          .c = reinterpret_cast<C*>(p.c),
          .c_stride = p.c_stride,
          .write = p.write};
}

// Calls body(As<A>, As<B>) with the types of the factors.
template <typename Body>
void with_factors(const Product& p, const Body& body) {
  with_float(p.a.dtype, [&]<typename A>(As<A> a) {
    with_float(p.b.dtype, [&]<typename B>(As<B> b) { body(a, b); });
  });
}

unsigned grid_of(std::int64_t blocks) {
  CHECK(blocks <= std::numeric_limits<int>::max(), "a product of {} tiles", blocks);
  return static_cast<unsigned>(blocks);
}

void check_write(const Product& p) {
  CHECK(p.c_dtype == DType::F32 || p.write == Write::Assign,
        "accumulation into {}",
        tensor::name_of(p.c_dtype));
}

}  // namespace
}  // namespace tiled_product_kernels

Factor factor(Stream& stream, const Tensor& matrix, SumOver sum_over) {
  return {.data = bytes_of(stream, matrix),
          .dtype = matrix.dtype(),
          .stride = matrix.row_stride(),
          .sum_over = sum_over};
}

void launch_tiled(cudaStream_t stream, const Product& product) {
  tiled_product_kernels::check_write(product);
  if (product.is_nothing()) return;
  const unsigned blocks = tiled_product_kernels::grid_of(
      tiled_product_kernels::tiles_of(product.m) * tiled_product_kernels::tiles_of(product.n));
  tiled_product_kernels::with_factors(product, [&]<typename A, typename B>(As<A>, As<B>) {
    with_float(product.c_dtype, [&]<typename C>(As<C>) {
      tiled_product_kernels::whole<A, B, C><<<blocks, tiled_product_kernels::kThreads, 0, stream>>>(
          tiled_product_kernels::typed<A, B, C>(product));
    });
  });
}

void launch_tiled_rows(cudaStream_t stream, const Product& product, const ExpertRows& rows) {
  CHECK(product.write == Write::Assign, "rows of experts are assigned");
  const unsigned blocks =
      tiled_product_kernels::grid_of(rows.most_cuts() * tiled_product_kernels::tiles_of(product.n));
  if (blocks == 0) return;
  tiled_product_kernels::with_factors(product, [&]<typename A, typename B>(As<A>, As<B>) {
    with_float(product.c_dtype, [&]<typename C>(As<C>) {
      tiled_product_kernels::rows_of_experts<A, B, C>
          <<<blocks, tiled_product_kernels::kThreads, 0, stream>>>(
              tiled_product_kernels::typed<A, B, C>(product),
              rows);
    });
  });
}

void launch_tiled_sums(cudaStream_t stream, const Product& product, const ExpertRows& rows) {
  tiled_product_kernels::check_write(product);
  const unsigned blocks =
      tiled_product_kernels::grid_of(rows.experts * tiled_product_kernels::tiles_of(product.m) *
                                     tiled_product_kernels::tiles_of(product.n));
  if (blocks == 0) return;
  tiled_product_kernels::with_factors(product, [&]<typename A, typename B>(As<A>, As<B>) {
    tiled_product_kernels::sums_of_experts<A, B>
        <<<blocks, tiled_product_kernels::kThreads, 0, stream>>>(
            tiled_product_kernels::typed<A, B, float>(product),
            rows);
  });
}

}  // namespace weft::kernels::cuda
