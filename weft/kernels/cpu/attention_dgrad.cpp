// Backward attention: the scores are computed again block by block from q, k and lse.
//
// A unit is one sequence, one key/value head and a share of the query heads that read it. It goes
// through its query blocks in order and sums dk and dv of its share in fp32; the shares are then
// added in order. The shares are cut by shape, so that there are units for several threads.
#include "weft/kernels/cpu/attention_blocks.h"
#include "weft/kernels/cpu/vector_math.h"

namespace weft::kernels {

using namespace cpu;

namespace {

constexpr std::int64_t kUnitsWanted = 8;

// In how many shares the heads of a group are cut: a divisor of their number.
std::int64_t shares_of(const AttentionSizes& s) {
  std::int64_t shares = 1;
  while (shares < s.heads_per_group() && s.batch * s.groups * shares < kUnitsWanted) {
    do {
      ++shares;
    } while (s.heads_per_group() % shares != 0);
  }
  return shares;
}

template <typename T>
struct Dgrad {
  AttentionSizes sizes;
  std::int64_t shares;
  Matrix<T> dq, dk, dv, dout, o, q, k, v;
  Matrix<float> lse;
  float* slots;    // scratch
  float* partial;  // (units, 2, S, d): dk and dv of a unit

  std::int64_t units() const { return sizes.batch * sizes.groups * shares; }
  std::int64_t partial_elements() const { return sizes.sequence * sizes.width; }
  float* partial_of(std::int64_t unit) const { return partial + 2 * unit * partial_elements(); }

  static std::int64_t slot_elements(const AttentionSizes& s) {
    return 2 * kQueries * s.key_chunk() + 3 * kQueries * s.width + 2 * s.key_chunk() * s.width;
  }

  void run_unit(std::int64_t unit, float* memory) const;
  void run_block(std::int64_t unit, std::int64_t head, Range queries, float* memory) const;
  void add_shares(std::int64_t line, Range rows) const;
};

// scores -> p = e^(scores - lse), dp -> ds = scale p (dp - delta); zero past the visible ones.
void score_gradient(float* p,
                    float* dp,
                    std::int64_t seen,
                    std::int64_t n,
                    float lse,
                    float delta,
                    float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < seen; ++i) {
    p[i] = exp_f32(p[i] - lse);
    dp[i] = scale * p[i] * (dp[i] - delta);
  }
  std::fill(p + seen, p + n, 0.0f);
  std::fill(dp + seen, dp + n, 0.0f);
}

template <typename T>
float dot(const T* a, const T* b, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += load(a[i]) * load(b[i]);
  return sum;
}

template <typename T>
void Dgrad<T>::run_block(std::int64_t unit, std::int64_t head, Range queries, float* memory) const {
  const std::int64_t d = sizes.width, m = queries.size();
  const std::int64_t first = unit / (sizes.groups * shares) * sizes.sequence;
  const std::int64_t column = head * d, group_column = head / sizes.heads_per_group() * d;
  SlotMemory slot(memory);
  float* p = slot.take(kQueries * sizes.key_chunk());
  float* dp = slot.take(kQueries * sizes.key_chunk());
  float* dq_sums = slot.take(kQueries * d);
  float* q_scratch = slot.take(kQueries * d);
  float* do_scratch = slot.take(kQueries * d);
  float* k_scratch = slot.take(sizes.key_chunk() * d);
  float* v_scratch = slot.take(sizes.key_chunk() * d);

  const std::int64_t row = first + queries.begin;
  const Factor qs = fp32_rows(q.row(row) + column, q.stride, m, d, q_scratch);
  const Factor dos = fp32_rows(dout.row(row) + column, dout.stride, m, d, do_scratch);
  float delta[kQueries];
  for (std::int64_t t = 0; t < m; ++t) {
    delta[t] = dot(dout.row(row + t) + column, o.row(row + t) + column, d);
  }
  float* dks = partial_of(unit);
  float* dvs = dks + partial_elements();
  const Cut chunks{queries.end, kKeys};
  for (std::int64_t i = 0; i < chunks.count(); ++i) {
    const Range keys = chunks[i];
    const std::int64_t n = keys.size(), key_row = first + keys.begin, at = keys.begin * d;
    const Factor ks = fp32_rows(k.row(key_row) + group_column, k.stride, n, d, k_scratch);
    const Factor vs = fp32_rows(v.row(key_row) + group_column, v.stride, n, d, v_scratch);
    sgemm(m, n, d, sizes.scale, qs, transposed(ks), {p, n, 0});
    sgemm(m, n, d, 1, dos, transposed(vs), {dp, n, 0});
    for (std::int64_t t = 0; t < m; ++t) {
      const std::int64_t seen = visible(queries.begin + t, keys);
      const float l = lse.row(head)[row + t];
      score_gradient(p + t * n, dp + t * n, seen, n, l, delta[t], sizes.scale);
    }
    sgemm(n, d, m, 1, {p, n, Transpose::Yes}, dos, {dvs + at, d, 1});
    sgemm(n, d, m, 1, {dp, n, Transpose::Yes}, qs, {dks + at, d, 1});
    sgemm(m, d, n, 1, {dp, n}, ks, {dq_sums, d, i == 0 ? 0.0f : 1.0f});
  }
  for (std::int64_t t = 0; t < m; ++t) {
    T* to = dq.row(row + t) + column;
#pragma omp simd
    for (std::int64_t c = 0; c < d; ++c) store(to[c], dq_sums[t * d + c]);
  }
}

template <typename T>
void Dgrad<T>::run_unit(std::int64_t unit, float* memory) const {
  std::fill_n(partial_of(unit), 2 * partial_elements(), 0.0f);
  const std::int64_t heads = sizes.heads_per_group() / shares;
  const std::int64_t first_head = unit % (sizes.groups * shares) * heads;
  const Cut query_cut{sizes.sequence, kQueries};
  for (std::int64_t head = first_head; head < first_head + heads; ++head) {
    for (std::int64_t i = 0; i < query_cut.count(); ++i) {
      run_block(unit, head, query_cut[i], memory);
    }
  }
}

// dk and dv of rows of one (sequence, group): the sum over its shares, in order.
template <typename T>
void Dgrad<T>::add_shares(std::int64_t line, Range rows) const {
  const std::int64_t d = sizes.width;
  const std::int64_t first = line / sizes.groups * sizes.sequence;
  const std::int64_t column = line % sizes.groups * d;
  for (std::int64_t s = rows.begin; s < rows.end; ++s) {
    T* dk_row = dk.row(first + s) + column;
    T* dv_row = dv.row(first + s) + column;
    for (std::int64_t c = 0; c < d; ++c) {
      float dk_sum = 0, dv_sum = 0;
      for (std::int64_t share = 0; share < shares; ++share) {
        const float* dks = partial_of(line * shares + share) + s * d;
        dk_sum += dks[c];
        dv_sum += dks[partial_elements() + c];
      }
      store(dk_row[c], dk_sum);
      store(dv_row[c], dv_sum);
    }
  }
}

template <typename T>
void run(Workers& workers, const Dgrad<T>& job, std::int64_t slots) {
  const std::int64_t slot_elements = Dgrad<T>::slot_elements(job.sizes);
  workers.parallel(slots, [&](std::int64_t slot) {
    for (std::int64_t unit = slot; unit < job.units(); unit += slots) {
      job.run_unit(unit, job.slots + slot * slot_elements);
    }
  });
  const Cut rows = cut_rows(job.sizes.sequence, job.sizes.width * job.shares);
  const std::int64_t lines = job.sizes.batch * job.sizes.groups;
  workers.parallel(lines * rows.count(), [&](std::int64_t i) {
    job.add_shares(i / rows.count(), rows[i % rows.count()]);
  });
}

}  // namespace

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
  const AttentionSizes sizes = attention_sizes(o, lse, q, k, v, shape);
  check_matrix("dq", dq, q.dim(0), q.dim(1));
  check_matrix("do", dout, q.dim(0), q.dim(1));
  check_matrix("dk", dk, k.dim(0), k.dim(1));
  check_matrix("dv", dv, k.dim(0), k.dim(1));
  with_float(q.dtype(), [&]<typename T>(As<T>) {
    Dgrad<T> job{.sizes = sizes,
                 .shares = shares_of(sizes),
                 .dq = matrix<T>(stream, dq),
                 .dk = matrix<T>(stream, dk),
                 .dv = matrix<T>(stream, dv),
                 .dout = matrix<T>(stream, dout),
                 .o = matrix<T>(stream, o),
                 .q = matrix<T>(stream, q),
                 .k = matrix<T>(stream, k),
                 .v = matrix<T>(stream, v),
                 .lse = matrix<float>(stream, lse),
                 .slots = nullptr,
                 .partial = nullptr};
    const std::int64_t slots = std::min(job.units(), kSlots);
    const Tensor scratch(workspace,
                         DType::F32,
                         {slots * Dgrad<T>::slot_elements(sizes)},
                         tensor::Tag::Workspace);
    const Tensor partial(workspace,
                         DType::F32,
                         {2 * job.units() * job.partial_elements()},
                         tensor::Tag::Workspace);
    job.slots = scratch.data<float>(stream);
    job.partial = partial.data<float>(stream);
    stream.enqueue("attention_dgrad", WorkClass::Attention, [job, slots](Workers& workers) {
      run(workers, job, slots);
    });
  });
}

}  // namespace weft::kernels
