// Forward attention with a running softmax: each tile of keys rescales what earlier tiles left.
#include "weft/kernels/cuda/attention/attention_tiles.h"
#include "weft/kernels/cuda/attention/cudnn_attention.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/shared_memory.h"

namespace weft::kernels::cuda {
namespace attention_forward_kernels {
namespace {

template <typename T>
struct Forward {
  AttentionSizes sizes;
  Matrix<T> o, q, k, v;
  Matrix<float> lse;
};

template <int kWidth, int kValue>
constexpr int shared_bytes() {
  return (Tile<kOwn, kWidth>::kElements + Tile<kPassing, kWidth>::kElements +
          Tile<kPassing, kValue>::kElements + Weights::kElements) *
         int(sizeof(float));
}

// Reduces over the threads of a line, which is half a warp. All of them get the result.
__device__ float line_sum(float x) {
  for (int step = kLanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(kAllLanes, x, step);
  return x;
}
__device__ float line_max(float x) {
  for (int step = kLanes / 2; step > 0; step /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, step));
  }
  return x;
}

// Running softmax of one query, the same in all threads of its line.
struct Running {
  float shift = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

// Turns the scores of one query with the keys from `keys` on into exponentials, zero from `seen`
// on. Returns the factor for the results of earlier tiles.
__device__ float add_scores(Running& running,
                            float (&scores)[kThreadColumns],
                            std::int64_t seen,
                            std::int64_t keys,
                            float scale) {
  bool visible[kThreadColumns];
  float shift = running.shift;
#pragma unroll
  for (int j = 0; j < kThreadColumns; ++j) {
    visible[j] = keys + lane_of_thread() + j * kLanes < seen;
    scores[j] *= scale;
    if (visible[j]) shift = fmaxf(shift, scores[j]);
  }
  shift = line_max(shift);
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kThreadColumns; ++j) {
    scores[j] = visible[j] ? expf(scores[j] - shift) : 0.0f;
    sum += scores[j];
  }
  const float factor = expf(running.shift - shift);
  running.sum = running.sum * factor + line_sum(sum);
  running.shift = shift;
  return factor;
}

// A block has a tile of queries of one head.
template <typename T, int kWidth, int kValue>
__global__ void __launch_bounds__(kAttentionThreads) forward(Forward<T> job) {
  extern __shared__ float4 shared[];
  SharedMemory memory(shared);
  const auto query_tile = memory.tile<Tile<kOwn, kWidth>>();
  const auto key_tile = memory.tile<Tile<kPassing, kWidth>>();
  const auto value_tile = memory.tile<Tile<kPassing, kValue>>();
  const auto weights = memory.tile<Weights>();

  const AttentionSizes& sizes = job.sizes;
  const Place place = place_of_block(sizes, sizes.heads);
  const int head = place.head, group = head / sizes.heads_per_group();
  // The longest blocks come first: the ones late in the sequence.
  const std::int64_t queries = (own_tiles(sizes.queries) - 1 - place.tile) * kOwn;
  const std::int64_t keys_end = sizes.seen_by(min(queries + kOwn, sizes.queries.count) - 1);
  const auto k = head_rows(job.k, sizes.keys, place.sequence, group, sizes.width);
  const auto v = head_rows(job.v, sizes.keys, place.sequence, group, sizes.value_width);

  load_tile(query_tile,
            head_rows(job.q, sizes.queries, place.sequence, head, sizes.width),
            queries);
  ThreadSums<kValue> sums;
  Running running[kThreadRows];
  for (std::int64_t keys = 0; keys < keys_end; keys += kPassing) {
    __syncthreads();  // all threads have read the tiles before
    load_tile(key_tile, k, keys);
    load_tile(value_tile, v, keys);
    __syncthreads();
    float scores[kThreadRows][kThreadColumns];
    dot_rows(scores, query_tile, key_tile);
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
      const int row = line_of_thread() + i * kLanes;
      const std::int64_t seen = sizes.seen_by(queries + row);
      sums.scale_row(i, add_scores(running[i], scores[i], seen, keys, sizes.scale));
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) {
        weights.row(row)[lane_of_thread() + j * kLanes] = scores[i][j];
      }
    }
    __syncwarp();  // a line writes and reads its own weights
    add_product(sums, weights, value_tile);
  }

  float* lse = lse_of(job.lse, sizes.queries, place.sequence, head);
#pragma unroll
  for (int i = 0; i < kThreadRows; ++i) {
    const std::int64_t query = queries + line_of_thread() + i * kLanes;
    sums.scale_row(i, 1.0f / running[i].sum);
    if (query < sizes.queries.count && lane_of_thread() == 0) {
      lse[query] = running[i].shift + logf(running[i].sum);
    }
  }
  store_rows(head_rows(job.o, sizes.queries, place.sequence, head, sizes.value_width),
             queries,
             sums);
}

}  // namespace
}  // namespace attention_forward_kernels

void attention_forward(Stream& stream,
                       Pool& workspace,
                       Tensor o,
                       Tensor lse,
                       Tensor q,
                       Tensor k,
                       Tensor v,
                       const AttentionShape& shape) {
  if (cudnn_attention_forward(stream, workspace, o, lse, q, k, v, shape)) return;
  const AttentionSizes sizes = attention_sizes(q.dim(0), shape);
  with_float(q.dtype(), [&]<typename T>(As<T>) {
    with_widths(sizes, [&]<int kWidth, int kValue>(HeadWidths<kWidth, kValue>) {
      const attention_forward_kernels::Forward<T> job{.sizes = sizes,
                                                      .o = matrix<T>(stream, o),
                                                      .q = matrix<T>(stream, q),
                                                      .k = matrix<T>(stream, k),
                                                      .v = matrix<T>(stream, v),
                                                      .lse = matrix<float>(stream, lse)};
      constexpr int kShared = attention_forward_kernels::shared_bytes<kWidth, kValue>();
      allow_shared(attention_forward_kernels::forward<T, kWidth, kValue>, kShared);
      const Grid grid{attention_blocks(sizes, sizes.heads, sizes.queries),
                      kAttentionThreads,
                      kShared};
      enqueue(stream,
              "attention_forward",
              WorkClass::Attention,
              grid,
              attention_forward_kernels::forward<T, kWidth, kValue>,
              job);
    });
  });
}

}  // namespace weft::kernels::cuda
