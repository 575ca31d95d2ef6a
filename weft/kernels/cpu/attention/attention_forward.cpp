// Forward attention with a running softmax: each chunk of keys rescales the output of earlier
// chunks.
#include <cmath>

#include "weft/kernels/cpu/attention/attention_blocks.h"
#include "weft/kernels/cpu/vector_math.h"
#include "weft/tensor/pool.h"

namespace weft::kernels::cpu {

namespace {

std::int64_t slots_of(const AttentionSizes& s) {
  return std::min(s.batch * s.heads * s.query_blocks(), kSlots);
}

template <typename T>
struct Forward {
  AttentionSizes sizes;
  Matrix<T> o, q, k, v;
  Matrix<float> lse;
  float* workspace;

  static std::int64_t slot_elements(const AttentionSizes& s) {
    return kQueries * s.key_chunk() + (kQueries + s.key_chunk()) * (s.width + s.value_width);
  }

  void run_block(std::int64_t sequence, std::int64_t head, Range queries, float* memory) const;
};

// Running softmax of one query.
struct Running {
  float shift = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

// Turns scores into exponentials, 0 behind the visible keys; rescales the output so far.
void add_chunk(Running& run,
               float* scores,
               std::int64_t seen,
               std::int64_t n,
               float* o,
               std::int64_t d) {
  const float shift = std::max(run.shift, largest(scores, seen));
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < seen; ++i) {
    scores[i] = exp_f32(scores[i] - shift);
    sum += scores[i];
  }
  std::fill(scores + seen, scores + n, 0.0f);
  if (run.sum > 0 && shift > run.shift) {
    const float factor = exp_f32(run.shift - shift);
    run.sum *= factor;
    for (std::int64_t c = 0; c < d; ++c) o[c] *= factor;
  }
  run.sum += sum;
  run.shift = shift;
}

template <typename T>
void Forward<T>::run_block(std::int64_t b, std::int64_t head, Range queries, float* memory) const {
  const std::int64_t d = sizes.width, dv = sizes.value_width;
  const std::int64_t group = head / sizes.heads_per_group();
  const std::int64_t m = queries.size();
  SlotMemory slot(memory);
  float* scores = slot.take(kQueries * sizes.key_chunk());
  float* sums = slot.take(kQueries * dv);
  float* q_scratch = slot.take(kQueries * d);
  float* k_scratch = slot.take(sizes.key_chunk() * d);
  float* v_scratch = slot.take(sizes.key_chunk() * dv);

  const std::int64_t row = sizes.first_query(b) + queries.begin;
  const Factor qs = fp32_rows(q.row(row) + head * d, q.stride, m, d, q_scratch);
  Running running[kQueries];
  const Cut chunks{sizes.seen_by(queries.end - 1), kKeys};
  for (std::int64_t i = 0; i < chunks.count(); ++i) {
    const Range keys = chunks[i];
    const std::int64_t n = keys.size(), key_row = sizes.first_key(b) + keys.begin;
    const Factor ks = fp32_rows(k.row(key_row) + group * d, k.stride, n, d, k_scratch);
    const Factor vs = fp32_rows(v.row(key_row) + group * dv, v.stride, n, dv, v_scratch);
    sgemm(m, n, d, sizes.scale, qs, transposed(ks), {scores, n, 0});
    for (std::int64_t t = 0; t < m; ++t) {
      const std::int64_t seen = sizes.visible(queries.begin + t, keys);
      add_chunk(running[t], scores + t * n, seen, n, sums + t * dv, dv);
    }
    sgemm(m, dv, n, 1, {scores, n}, vs, {sums, dv, i == 0 ? 0.0f : 1.0f});
  }
  for (std::int64_t t = 0; t < m; ++t) {
    const float inverse = 1.0f / running[t].sum;
    T* to = o.row(row + t) + head * dv;
#pragma omp simd
    for (std::int64_t c = 0; c < dv; ++c) store(to[c], sums[t * dv + c] * inverse);
    lse.row(head)[row + t] = running[t].shift + std::log(running[t].sum);
  }
}

}  // namespace

std::int64_t forward_workspace(const AttentionSizes& sizes) {
  return slots_of(sizes) * Forward<float>::slot_elements(sizes);
}

void attention_forward(Stream& stream,
                       Pool& workspace,
                       Tensor o,
                       Tensor lse,
                       Tensor q,
                       Tensor k,
                       Tensor v,
                       const AttentionShape& shape) {
  const AttentionSizes sizes = attention_sizes(q.dim(0), shape);
  with_float(q.dtype(), [&]<typename T>(As<T>) {
    const std::int64_t lines = sizes.batch * sizes.heads;
    const std::int64_t blocks = lines * sizes.query_blocks();
    const std::int64_t slots = slots_of(sizes);
    const std::int64_t slot_elements = Forward<T>::slot_elements(sizes);
    const Tensor memory(workspace, DType::F32, {forward_workspace(sizes)}, tensor::Tag::Workspace);
    const Forward<T> job{.sizes = sizes,
                         .o = matrix<T>(stream, o),
                         .q = matrix<T>(stream, q),
                         .k = matrix<T>(stream, k),
                         .v = matrix<T>(stream, v),
                         .lse = matrix<float>(stream, lse),
                         .workspace = data<float>(stream, memory)};
    enqueue(stream, "attention_forward", WorkClass::Attention, [=](Workers& workers) {
      const Cut query_cut{sizes.queries.count, kQueries};
      workers.parallel(slots, [&](std::int64_t slot) {
        // The longest blocks, those late in the sequence, come first.
        for (std::int64_t i = slot; i < blocks; i += slots) {
          const std::int64_t line = i % lines;
          const Range queries = query_cut[query_cut.count() - 1 - i / lines];
          job.run_block(line / sizes.heads,
                        line % sizes.heads,
                        queries,
                        job.workspace + slot * slot_elements);
        }
      });
    });
  });
}

}  // namespace weft::kernels::cpu
