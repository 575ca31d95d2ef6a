// Backward attention: the scores are recomputed tile by tile from q, k and lse.
//
// One kernel sums dq over the keys of a tile of queries. Another sums dk and dv over the queries
// that see a tile of keys, head by head of the group. So every sum has one owner and one order.
// Both kernels form delta = sum of do * o of a query from the same two rows: storing it costs more.
#include "weft/kernels/cuda/attention/attention_tiles.h"
#include "weft/kernels/cuda/attention/cudnn_attention.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/shared_memory.h"

namespace weft::kernels::cuda {
namespace attention_dgrad_kernels {
namespace {

template <typename T>
struct Dgrad {
  AttentionSizes sizes;
  Matrix<T> dq, dk, dv, dout, o, q, k, v;
  Matrix<float> lse;
};

// Query's part in the gradient of a score.
template <int kRows>
struct QueryNumbers {
  static constexpr int kElements = 2 * kRows;

  float* data;

  __device__ float* lse() const { return data; }
  __device__ float* delta() const { return data + kRows; }
};

template <int kQueries, int kKeys, int kWeights, int kWidth, int kValue>
constexpr int shared_bytes() {
  return ((kQueries + kKeys) * (Tile<1, kWidth>::kElements + Tile<1, kValue>::kElements) +
          kWeights * Weights::kElements + QueryNumbers<kQueries>::kElements) *
         int(sizeof(float));
}
template <int kWidth, int kValue>
constexpr int dq_shared_bytes() {
  return shared_bytes<kOwn, kPassing, 1, kWidth, kValue>();
}
template <int kWidth, int kValue>
constexpr int dkv_shared_bytes() {
  return shared_bytes<kPassing, kOwn, 2, kWidth, kValue>();
}

// Loads the queries from `begin` on. A warp takes whole rows.
template <typename T, int kRows>
__device__ void load_numbers(const QueryNumbers<kRows>& numbers,
                             const HeadRows<T>& dout,
                             const HeadRows<T>& o,
                             const float* lse,
                             std::int64_t begin) {
  const int lane = int(threadIdx.x) % kWarp;
  for (int r = int(threadIdx.x) / kWarp; r < kRows; r += kAttentionThreads / kWarp) {
    const std::int64_t query = begin + r;
    const bool inside = query < o.rows;
    float delta = 0;
    for (int c = lane; inside && c < o.width; c += kWarp) {
      delta += load(dout.row(query)[c]) * load(o.row(query)[c]);
    }
    delta = warp_sum(delta);
    if (lane == 0) {
      numbers.lse()[r] = inside ? lse[query] : 0.0f;
      numbers.delta()[r] = delta;
    }
  }
}

struct ScoreGradient {
  float p, ds;
};
// score -> p = e^(score - lse), dp -> ds = scale p (dp - delta); zero if the mask hides the key.
__device__ ScoreGradient
score_gradient(float product, float dp, float lse, float delta, float scale, bool visible) {
  if (!visible) return {0, 0};
  const float p = expf(scale * product - lse);
  return {p, scale * p * (dp - delta)};
}

// A block has a tile of queries of one head.
template <typename T, int kWidth, int kValue>
__global__ void __launch_bounds__(kAttentionThreads) query_dgrad(Dgrad<T> job) {
  extern __shared__ float4 shared[];
  SharedMemory memory(shared);
  const auto query_tile = memory.tile<Tile<kOwn, kWidth>>();
  const auto dout_tile = memory.tile<Tile<kOwn, kValue>>();
  const auto key_tile = memory.tile<Tile<kPassing, kWidth>>();
  const auto value_tile = memory.tile<Tile<kPassing, kValue>>();
  const auto ds_weights = memory.tile<Weights>();
  const auto numbers = memory.tile<QueryNumbers<kOwn>>();

  const AttentionSizes& sizes = job.sizes;
  const Place place = place_of_block(sizes, sizes.heads);
  const int head = place.head, group = head / sizes.heads_per_group();
  // The longest blocks come first: the ones late in the sequence.
  const std::int64_t queries = (own_tiles(sizes.queries) - 1 - place.tile) * kOwn;
  const std::int64_t keys_end = sizes.seen_by(min(queries + kOwn, sizes.queries.count) - 1);
  const auto dout = head_rows(job.dout, sizes.queries, place.sequence, head, sizes.value_width);
  const auto o = head_rows(job.o, sizes.queries, place.sequence, head, sizes.value_width);
  const auto k = head_rows(job.k, sizes.keys, place.sequence, group, sizes.width);
  const auto v = head_rows(job.v, sizes.keys, place.sequence, group, sizes.value_width);

  load_tile(query_tile,
            head_rows(job.q, sizes.queries, place.sequence, head, sizes.width),
            queries);
  load_tile(dout_tile, dout, queries);
  load_numbers(numbers, dout, o, lse_of(job.lse, sizes.queries, place.sequence, head), queries);
  ThreadSums<kWidth> dq;
  for (std::int64_t keys = 0; keys < keys_end; keys += kPassing) {
    __syncthreads();  // all threads have read the tiles before
    load_tile(key_tile, k, keys);
    load_tile(value_tile, v, keys);
    __syncthreads();
    float products[kThreadRows][kThreadColumns], dp[kThreadRows][kThreadColumns];
    dot_rows(products, query_tile, key_tile);
    dot_rows(dp, dout_tile, value_tile);
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
      const int row = line_of_thread() + i * kLanes;
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) {
        const int column = lane_of_thread() + j * kLanes;
        const ScoreGradient gradient = score_gradient(products[i][j],
                                                      dp[i][j],
                                                      numbers.lse()[row],
                                                      numbers.delta()[row],
                                                      sizes.scale,
                                                      keys + column < sizes.seen_by(queries + row));
        ds_weights.row(row)[column] = gradient.ds;
      }
    }
    __syncwarp();  // a line writes and reads its own weights
    add_product(dq, ds_weights, key_tile);
  }
  store_rows(head_rows(job.dq, sizes.queries, place.sequence, head, sizes.width), queries, dq);
}

// A block has a tile of keys of one group.
template <typename T, int kWidth, int kValue>
__global__ void __launch_bounds__(kAttentionThreads) key_value_dgrad(Dgrad<T> job) {
  extern __shared__ float4 shared[];
  SharedMemory memory(shared);
  const auto key_tile = memory.tile<Tile<kOwn, kWidth>>();
  const auto value_tile = memory.tile<Tile<kOwn, kValue>>();
  const auto query_tile = memory.tile<Tile<kPassing, kWidth>>();
  const auto dout_tile = memory.tile<Tile<kPassing, kValue>>();
  const auto p_weights = memory.tile<Weights>();
  const auto ds_weights = memory.tile<Weights>();
  const auto numbers = memory.tile<QueryNumbers<kPassing>>();

  const AttentionSizes& sizes = job.sizes;
  const Place place = place_of_block(sizes, sizes.groups);
  const int group = place.head, heads = sizes.heads_per_group();
  // The longest blocks come first: the ones early in the sequence.
  const std::int64_t keys = place.tile * kOwn;

  load_tile(key_tile, head_rows(job.k, sizes.keys, place.sequence, group, sizes.width), keys);
  load_tile(value_tile,
            head_rows(job.v, sizes.keys, place.sequence, group, sizes.value_width),
            keys);
  ThreadSums<kWidth> dk;
  ThreadSums<kValue> dv;
  for (int head = group * heads; head < (group + 1) * heads; ++head) {
    const auto q = head_rows(job.q, sizes.queries, place.sequence, head, sizes.width);
    const auto dout = head_rows(job.dout, sizes.queries, place.sequence, head, sizes.value_width);
    const auto o = head_rows(job.o, sizes.queries, place.sequence, head, sizes.value_width);
    const float* lse = lse_of(job.lse, sizes.queries, place.sequence, head);
    for (std::int64_t queries = sizes.first_to_see(keys); queries < sizes.queries.count;
         queries += kPassing) {
      __syncthreads();  // all threads have read the tiles before
      load_tile(query_tile, q, queries);
      load_tile(dout_tile, dout, queries);
      load_numbers(numbers, dout, o, lse, queries);
      __syncthreads();
      float products[kThreadRows][kThreadColumns], dp[kThreadRows][kThreadColumns];
      dot_rows(products, key_tile, query_tile);
      dot_rows(dp, value_tile, dout_tile);
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
        const int row = line_of_thread() + i * kLanes;
#pragma unroll
        for (int j = 0; j < kThreadColumns; ++j) {
          const int column = lane_of_thread() + j * kLanes;
          const ScoreGradient gradient =
              score_gradient(products[i][j],
                             dp[i][j],
                             numbers.lse()[column],
                             numbers.delta()[column],
                             sizes.scale,
                             keys + row < sizes.seen_by(queries + column));
          p_weights.row(row)[column] = gradient.p;
          ds_weights.row(row)[column] = gradient.ds;
        }
      }
      __syncwarp();  // a line writes and reads its own weights
      add_product(dv, p_weights, dout_tile);
      add_product(dk, ds_weights, query_tile);
    }
  }
  store_rows(head_rows(job.dk, sizes.keys, place.sequence, group, sizes.width), keys, dk);
  store_rows(head_rows(job.dv, sizes.keys, place.sequence, group, sizes.value_width), keys, dv);
}

template <typename T, int kWidth, int kValue>
void run(Stream& stream, const Dgrad<T>& job) {
  const AttentionSizes& sizes = job.sizes;
  constexpr int kQueryShared = dq_shared_bytes<kWidth, kValue>();
  constexpr int kKeyShared = dkv_shared_bytes<kWidth, kValue>();
  allow_shared(query_dgrad<T, kWidth, kValue>, kQueryShared);
  allow_shared(key_value_dgrad<T, kWidth, kValue>, kKeyShared);
  const unsigned query_blocks = attention_blocks(sizes, sizes.heads, sizes.queries);
  const unsigned key_blocks = attention_blocks(sizes, sizes.groups, sizes.keys);
  enqueue_all(stream, "attention_dgrad", WorkClass::Attention, [=](cudaStream_t handle) {
    if (sizes.batch == 0) return;
    query_dgrad<T, kWidth, kValue><<<query_blocks, kAttentionThreads, kQueryShared, handle>>>(job);
    key_value_dgrad<T, kWidth, kValue><<<key_blocks, kAttentionThreads, kKeyShared, handle>>>(job);
  });
}

}  // namespace
}  // namespace attention_dgrad_kernels

void attention_dgrad(Stream& stream,
                     Pool& workspace,
                     Tensor dq,
                     Tensor dk,
                     Tensor dv,
                     Tensor dout,
                     Tensor o,
                     Tensor lse,
                     Tensor q,
                     Tensor k,
                     Tensor v,
                     const AttentionShape& shape) {
  if (cudnn_attention_dgrad(stream, workspace, dq, dk, dv, dout, o, lse, q, k, v, shape)) return;
  const AttentionSizes sizes = attention_sizes(q.dim(0), shape);
  with_float(q.dtype(), [&]<typename T>(As<T>) {
    const attention_dgrad_kernels::Dgrad<T> job{.sizes = sizes,
                                                .dq = matrix<T>(stream, dq),
                                                .dk = matrix<T>(stream, dk),
                                                .dv = matrix<T>(stream, dv),
                                                .dout = matrix<T>(stream, dout),
                                                .o = matrix<T>(stream, o),
                                                .q = matrix<T>(stream, q),
                                                .k = matrix<T>(stream, k),
                                                .v = matrix<T>(stream, v),
                                                .lse = matrix<float>(stream, lse)};
    with_widths(sizes, [&]<int kWidth, int kValue>(HeadWidths<kWidth, kValue>) {
      attention_dgrad_kernels::run<T, kWidth, kValue>(stream, job);
    });
  });
}

}  // namespace weft::kernels::cuda
