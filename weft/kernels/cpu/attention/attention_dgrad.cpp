// Backward attention: recomputes the scores block by block from q, k and lse.
//
// A unit is one sequence, one key/value head and a share of its query heads. It runs its query
// blocks in order and sums dk and dv of its share in fp32; the shares are then added in order.
// Shapes alone decide the shares, which give several threads work.
#include "weft/kernels/cpu/attention/attention_blocks.h"
#include "weft/kernels/cpu/vector_math.h"
#include "weft/tensor/pool.h"

namespace weft::kernels::cpu {

namespace {

constexpr std::int64_t kUnitsWanted = 16;

// Number of shares that a group's heads are cut into: a divisor of the heads per group.
std::int64_t shares_of(const AttentionSizes& s) {
  std::int64_t shares = 1;
  while (shares < s.heads_per_group() && s.batch * s.groups * shares < kUnitsWanted) {
    do {
      ++shares;
    } while (s.heads_per_group() % shares != 0);
  }
  return shares;
}

std::int64_t units_of(const AttentionSizes& s, std::int64_t shares) {
  return s.batch * s.groups * shares;
}

template <typename T>
struct Dgrad {
  AttentionSizes sizes;
  std::int64_t shares;
  Matrix<T> dq, dk, dv, dout, o, q, k, v;
  Matrix<float> lse;
  float* slots;    // scratch
  float* partial;  // per unit: dk (keys, d), then dv (keys, value width)

  std::int64_t units() const { return units_of(sizes, shares); }
  std::int64_t dk_elements() const { return sizes.keys.count * sizes.width; }
  static std::int64_t partial_elements(const AttentionSizes& s) {
    return s.keys.count * (s.width + s.value_width);
  }
  float* dk_of(std::int64_t unit) const { return partial + unit * partial_elements(sizes); }
  float* dv_of(std::int64_t unit) const { return dk_of(unit) + dk_elements(); }

  static std::int64_t slot_elements(const AttentionSizes& s) {
    return kQueries * (2 * s.key_chunk() + s.width) +
           (kQueries + s.key_chunk()) * (s.width + s.value_width);
  }

  void run_unit(std::int64_t unit, float* memory) const;
  void run_block(std::int64_t unit, std::int64_t head, Range queries, float* memory) const;
  void add_shares(std::int64_t line, Range rows) const;
};

// scores -> p = e^(scores - lse), dp -> ds = scale p (dp - delta); 0 behind the visible keys.
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
void Dgrad<T>::run_block(std::int64_t unit, std::int64_t head, Range queries, float* memory) const {
  const std::int64_t d = sizes.width, d_value = sizes.value_width, m = queries.size();
  const std::int64_t sequence = unit / (sizes.groups * shares);
  const std::int64_t group = head / sizes.heads_per_group(), o_column = head * d_value;
  SlotMemory slot(memory);
  float* p = slot.take(kQueries * sizes.key_chunk());
  float* dp = slot.take(kQueries * sizes.key_chunk());
  float* dq_sums = slot.take(kQueries * d);
  float* q_scratch = slot.take(kQueries * d);
  float* do_scratch = slot.take(kQueries * d_value);
  float* k_scratch = slot.take(sizes.key_chunk() * d);
  float* v_scratch = slot.take(sizes.key_chunk() * d_value);

  const std::int64_t row = sizes.first_query(sequence) + queries.begin;
  const Factor qs = fp32_rows(q.row(row) + head * d, q.stride, m, d, q_scratch);
  const Factor dos = fp32_rows(dout.row(row) + o_column, dout.stride, m, d_value, do_scratch);
  float delta[kQueries];
  for (std::int64_t t = 0; t < m; ++t) {
    delta[t] = dot(dout.row(row + t) + o_column, o.row(row + t) + o_column, d_value);
  }
  float* dks = dk_of(unit);
  float* dvs = dv_of(unit);
  const Cut chunks{sizes.seen_by(queries.end - 1), kKeys};
  for (std::int64_t i = 0; i < chunks.count(); ++i) {
    const Range keys = chunks[i];
    const std::int64_t n = keys.size(), key_row = sizes.first_key(sequence) + keys.begin;
    const Factor ks = fp32_rows(k.row(key_row) + group * d, k.stride, n, d, k_scratch);
    const Factor vs = fp32_rows(v.row(key_row) + group * d_value, v.stride, n, d_value, v_scratch);
    sgemm(m, n, d, sizes.scale, qs, transposed(ks), {p, n, 0});
    sgemm(m, n, d_value, 1, dos, transposed(vs), {dp, n, 0});
    for (std::int64_t t = 0; t < m; ++t) {
      const std::int64_t seen = sizes.visible(queries.begin + t, keys);
      const float l = lse.row(head)[row + t];
      score_gradient(p + t * n, dp + t * n, seen, n, l, delta[t], sizes.scale);
    }
    sgemm(n, d_value, m, 1, {p, n, Transpose::Yes}, dos, {dvs + keys.begin * d_value, d_value, 1});
    sgemm(n, d, m, 1, {dp, n, Transpose::Yes}, qs, {dks + keys.begin * d, d, 1});
    sgemm(m, d, n, 1, {dp, n}, ks, {dq_sums, d, i == 0 ? 0.0f : 1.0f});
  }
  for (std::int64_t t = 0; t < m; ++t) {
    T* to = dq.row(row + t) + head * d;
#pragma omp simd
    for (std::int64_t c = 0; c < d; ++c) store(to[c], dq_sums[t * d + c]);
  }
}

template <typename T>
void Dgrad<T>::run_unit(std::int64_t unit, float* memory) const {
  std::fill_n(dk_of(unit), partial_elements(sizes), 0.0f);
  const std::int64_t heads = sizes.heads_per_group() / shares;
  const std::int64_t first_head = unit % (sizes.groups * shares) * heads;
  const Cut query_cut{sizes.queries.count, kQueries};
  for (std::int64_t head = first_head; head < first_head + heads; ++head) {
    for (std::int64_t i = 0; i < query_cut.count(); ++i) {
      run_block(unit, head, query_cut[i], memory);
    }
  }
}

// dk and dv of rows of one (sequence, group): the sum over its shares, in order.
template <typename T>
void Dgrad<T>::add_shares(std::int64_t line, Range rows) const {
  const std::int64_t first = sizes.first_key(line / sizes.groups), group = line % sizes.groups;
  const auto add = [&](T* to, const float* part, std::int64_t width) {
    for (std::int64_t c = 0; c < width; ++c) {
      float sum = 0;
      for (std::int64_t share = 0; share < shares; ++share) {
        sum += part[share * partial_elements(sizes) + c];
      }
      store(to[c], sum);
    }
  };
  const std::int64_t d = sizes.width, d_value = sizes.value_width, unit = line * shares;
  for (std::int64_t s = rows.begin; s < rows.end; ++s) {
    add(dk.row(first + s) + group * d, dk_of(unit) + s * d, d);
    add(dv.row(first + s) + group * d_value, dv_of(unit) + s * d_value, d_value);
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
  const Cut rows = cut_rows(job.sizes.keys.count, job.sizes.width * job.shares);
  const std::int64_t lines = job.sizes.batch * job.sizes.groups;
  workers.parallel(lines * rows.count(), [&](std::int64_t i) {
    job.add_shares(i / rows.count(), rows[i % rows.count()]);
  });
}

}  // namespace

DgradWorkspace dgrad_workspace(const AttentionSizes& sizes) {
  const std::int64_t units = units_of(sizes, shares_of(sizes));
  return {.slots = std::min(units, kSlots) * Dgrad<float>::slot_elements(sizes),
          .partial = units * Dgrad<float>::partial_elements(sizes)};
}

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
  const AttentionSizes sizes = attention_sizes(q.dim(0), shape);
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
    const DgradWorkspace floats = dgrad_workspace(sizes);
    const Tensor scratch(workspace, DType::F32, {floats.slots}, tensor::Tag::Workspace);
    const Tensor partial(workspace, DType::F32, {floats.partial}, tensor::Tag::Workspace);
    job.slots = data<float>(stream, scratch);
    job.partial = data<float>(stream, partial);
    enqueue(stream, "attention_dgrad", WorkClass::Attention, [job, slots](Workers& workers) {
      run(workers, job, slots);
    });
  });
}

}  // namespace weft::kernels::cpu
