// Attention over parts of the keys: merges outputs by their lse, sums gradients.
#include <cmath>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/vector_math.h"

namespace weft::kernels::cpu {
namespace {

// Calls body(row) for the rows of all sequences of a matrix of `all` rows.
template <typename Body>
void for_rows(Workers& workers,
              const SequenceRows& rows,
              std::int64_t all,
              std::int64_t columns,
              const Body& body) {
  parallel(workers, cut_rows(all / rows.each * rows.count, columns), [&](Range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      body(i / rows.count * rows.each + rows.begin + i % rows.count);
    }
  });
}

template <typename T>
struct Merge {
  std::int64_t heads, width;
  Matrix<float> sum, lse;
  Matrix<T> part;
  Matrix<float> part_lse;

  void run_row(std::int64_t t) const {
    for (std::int64_t head = 0; head < heads; ++head) {
      float& own = lse.row(head)[t];
      const float other = part_lse.row(head)[t], high = std::max(own, other);
      const float both = high + std::log(exp_f32(own - high) + exp_f32(other - high));
      const float keep = exp_f32(own - both), take = exp_f32(other - both);
      float* to = sum.row(t) + head * width;
      const T* from = part.row(t) + head * width;
#pragma omp simd
      for (std::int64_t c = 0; c < width; ++c) to[c] = keep * to[c] + take * load(from[c]);
      own = both;
    }
  }
};

}  // namespace

void attention_merge(Stream& stream,
                     Tensor sum,
                     Tensor lse,
                     Tensor part,
                     Tensor part_lse,
                     const AttentionShape& shape) {
  with_float(part.dtype(), [&]<typename T>(As<T>) {
    const Merge<T> job{.heads = shape.heads,
                       .width = shape.value_width.value_or(shape.head_width),
                       .sum = matrix<float>(stream, sum),
                       .lse = matrix<float>(stream, lse),
                       .part = matrix<T>(stream, part),
                       .part_lse = matrix<float>(stream, part_lse)};
    enqueue(stream,
            "attention_merge",
            WorkClass::Memory,
            [job, rows = shape.query_rows()](Workers& workers) {
              for_rows(workers, rows, job.sum.rows, job.sum.columns, [&](std::int64_t t) {
                job.run_row(t);
              });
            });
  });
}

void accumulate_rows(Stream& stream, Tensor y, Tensor x, const SequenceRows& rows) {
  with_float(x.dtype(), [&]<typename T>(As<T>) {
    const Matrix<float> to = matrix<float>(stream, y);
    const Matrix<T> from = matrix<T>(stream, x);
    enqueue(stream, "accumulate_rows", WorkClass::Memory, [=](Workers& workers) {
      for_rows(workers, rows, to.rows, to.columns, [&](std::int64_t t) {
        float* ys = to.row(t);
        const T* xs = from.row(t);
#pragma omp simd
        for (std::int64_t c = 0; c < to.columns; ++c) ys[c] += load(xs[c]);
      });
    });
  });
}

}  // namespace weft::kernels::cpu
