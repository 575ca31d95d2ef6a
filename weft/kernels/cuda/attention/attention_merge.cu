// Attention over parts of the keys: merges outputs of parts by their lse, and sums gradients of
// parts.
#include "weft/kernels/cuda/device/byte_rows.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/warps.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels::cuda {
namespace attention_merge_kernels {
namespace {

// Row of the matrix at place i among `rows`.
__device__ std::int64_t named_row(const SequenceRows& rows, std::int64_t i) {
  return i / rows.count * rows.each + rows.begin + i % rows.count;
}

template <typename T>
struct Merge {
  SequenceRows rows;
  std::int64_t count;  // all rows
  int heads, width;
  Matrix<float> sum, lse;
  Matrix<T> part;
  Matrix<float> part_lse;
};

// A warp has one query of one head: it reads no lse that another warp has written.
template <typename T>
__global__ void merge(Merge<T> job) {
  for (std::int64_t i = first_warp(); i < job.count * job.heads; i += warp_step()) {
    const std::int64_t t = named_row(job.rows, i / job.heads);
    const int head = int(i % job.heads);
    const float own = job.lse.row(head)[t], other = job.part_lse.row(head)[t];
    const float high = fmaxf(own, other);
    const float both = high + logf(expf(own - high) + expf(other - high));
    const float keep = expf(own - both), take = expf(other - both);
    float* to = job.sum.row(t) + std::int64_t(head) * job.width;
    const T* from = job.part.row(t) + std::int64_t(head) * job.width;
    for (int c = lane(); c < job.width; c += kWarp) to[c] = keep * to[c] + take * load(from[c]);
    __syncwarp();
    if (lane() == 0) job.lse.row(head)[t] = both;
  }
}

template <typename T>
__global__ void add_rows(Matrix<float> y, Matrix<T> x, SequenceRows rows, std::int64_t count) {
  for (std::int64_t i = first_row(); i < count; i += row_step()) {
    const std::int64_t t = named_row(rows, i);
    for (std::int64_t c = threadIdx.x; c < y.columns; c += blockDim.x) {
      y.row(t)[c] += load(x.row(t)[c]);
    }
  }
}

std::int64_t named_rows(std::int64_t all, const SequenceRows& rows) {
  return all / rows.each * rows.count;
}

}  // namespace
}  // namespace attention_merge_kernels

void attention_merge(Stream& stream,
                     Tensor sum,
                     Tensor lse,
                     Tensor part,
                     Tensor part_lse,
                     const AttentionShape& shape) {
  with_float(part.dtype(), [&]<typename T>(As<T>) {
    const SequenceRows rows = shape.query_rows();
    const attention_merge_kernels::Merge<T> job{
        .rows = rows,
        .count = attention_merge_kernels::named_rows(sum.dim(0), rows),
        .heads = int(shape.heads),
        .width = int(shape.value_width.value_or(shape.head_width)),
        .sum = matrix<float>(stream, sum),
        .lse = matrix<float>(stream, lse),
        .part = matrix<T>(stream, part),
        .part_lse = matrix<float>(stream, part_lse)};
    const Grid grid{blocks_for(job.count * job.heads, int(kRowThreads) / kWarp), kRowThreads};
    enqueue(stream,
            "attention_merge",
            WorkClass::Memory,
            grid,
            attention_merge_kernels::merge<T>,
            job);
  });
}

void accumulate_rows(Stream& stream, Tensor y, Tensor x, const SequenceRows& rows) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const std::int64_t count = attention_merge_kernels::named_rows(y.dim(0), rows);
    enqueue(stream,
            "accumulate_rows",
            WorkClass::Memory,
            short_rows_grid(count, y.dim(1)),
            attention_merge_kernels::add_rows<T>,
            matrix<float>(stream, y),
            matrix<T>(stream, x),
            rows,
            count);
  });
}

}  // namespace weft::kernels::cuda
