// AdamW reads and writes memory once, in blocks that stay in the first-level cache. 16-bit state is
// widened to fp32 there; one loop computes for every form of state.
#include <algorithm>
#include <array>
#include <cmath>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/vector_math.h"
#include "weft/tensor/narrow_numbers.h"

namespace weft::kernels::cpu {

namespace {

// Options as the loop needs them, computed once in fp64.
struct Factors {
  float gradient_scale, beta1, beta2, rest1, rest2;
  float keep;  // factor of the weight: 1 - learning rate * decay
  float rate;  // learning rate / (1 - beta1^step)
  float root;  // 1 / sqrt(1 - beta2^step)
  float epsilon;
};

Factors factors_of(const AdamW& options) {
  const double beta1 = options.beta1, beta2 = options.beta2, lr = options.learning_rate;
  const auto step = static_cast<double>(options.step);
  return {.gradient_scale = options.gradient_scale,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .rest1 = static_cast<float>(1 - beta1),
          .rest2 = static_cast<float>(1 - beta2),
          .keep = static_cast<float>(1 - lr * static_cast<double>(options.weight_decay)),
          .rate = static_cast<float>(lr / (1 - std::pow(beta1, step))),
          .root = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, step))),
          .epsilon = options.epsilon};
}

// Calls body(elements, keep) for each run of a range with one decay; `keep` multiplies the weight.
template <typename Body>
void for_each_run(Range range,
                  const std::vector<ElementRun>& undecayed,
                  const Factors& f,
                  const Body& body) {
  std::int64_t at = range.begin;
  for (const ElementRun& run : undecayed) {
    const std::int64_t begin = std::clamp(run.begin, at, range.end);
    const std::int64_t end = std::clamp(run.end, at, range.end);
    if (at < begin) body(Range{at, begin}, f.keep);
    if (begin < end) body(Range{begin, end}, 1.0f);
    at = end;
  }
  if (at < range.end) body(Range{at, range.end}, f.keep);
}

// m, v, g and w do not overlap, so the loop vectorises. Every rounding is explicit.
// cuda/optimizer/adamw.cu has the same roundings, and so the same bits: both round products, roots
// and quotients to nearest.
void update(float* w,
            float* m,
            float* v,
            const float* g,
            std::int64_t n,
            float keep,
            const Factors& f) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] * f.gradient_scale;
    const float m1 = multiply_add(f.beta1, m[i], f.rest1 * gradient);
    const float m2 = multiply_add(f.beta2, v[i], f.rest2 * gradient * gradient);
    const float change = f.rate * m1 / multiply_add(std::sqrt(m2), f.root, f.epsilon);
    w[i] = multiply_add(keep, w[i], -change);
    m[i] = m1;
    v[i] = m2;
  }
}

constexpr std::int64_t kBlock = 1024;
using FloatBlock = std::array<float, kBlock>;

// Moment in memory, in one of three forms.
struct StoredMoment {
  float* wide = nullptr;
  BFloat16* bf16 = nullptr;
  tensor::Float16* fp16 = nullptr;
};

StoredMoment moment_of(Stream& stream, const Tensor& x) {
  if (x.dtype() == DType::BF16) return {.bf16 = data<BFloat16>(stream, x)};
  if (x.dtype() == DType::F16) return {.fp16 = data<tensor::Float16>(stream, x)};
  return {.wide = data<float>(stream, x)};
}

// The n numbers from `at` on as fp32: in place, or converted into `room`. `decode` is for fp16.
template <float (*decode)(tensor::Float16)>
float* opened(const StoredMoment& moment, std::int64_t at, std::int64_t n, FloatBlock& room) {
  if (moment.wide != nullptr) return moment.wide + at;
  float* out = room.data();
  if (moment.bf16 != nullptr) {
    const BFloat16* from = moment.bf16 + at;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = load(from[i]);
  } else {
    const tensor::Float16* from = moment.fp16 + at;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = decode(from[i]);
  }
  return out;
}

// Stores the numbers back in the moment's form.
template <tensor::Float16 (*encode)(float)>
void put_back(const StoredMoment& moment, std::int64_t at, std::int64_t n, const FloatBlock& room) {
  const float* from = room.data();
  if (moment.bf16 != nullptr) {
    BFloat16* to = moment.bf16 + at;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) store(to[i], from[i]);
  } else if (moment.fp16 != nullptr) {
    tensor::Float16* to = moment.fp16 + at;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) to[i].bits = encode(from[i]).bits;
  }
}

// Weights and their masters: one tensor, two tensors, or two halves of one number.
struct Masters {
  float* wide = nullptr;
  BFloat16* weights = nullptr;      // nullptr: the masters are the weights
  tensor::Float16* fp16 = nullptr;  // replaces `wide`
  // replaces `wide`: low bits of the masters; the weights are the high bits
  std::int16_t* remainders = nullptr;
};

Masters masters_of(Stream& stream, const Tensor& weights, const Tensor& master) {
  if (weights.dtype() == DType::F32) {
    float* own = data<float>(stream, weights);
    CHECK(data<float>(stream, master) == own, "fp32 weights are their own master");
    return {.wide = own};
  }
  BFloat16* rounded = data<BFloat16>(stream, weights);
  if (master.dtype() == DType::F32) {
    return {.wide = data<float>(stream, master), .weights = rounded};
  }
  if (master.dtype() == DType::F16) {
    return {.weights = rounded, .fp16 = data<tensor::Float16>(stream, master)};
  }
  return {.weights = rounded, .remainders = data<std::int16_t>(stream, master)};
}

float* opened(const Masters& masters, std::int64_t at, std::int64_t n, FloatBlock& room) {
  if (masters.wide != nullptr) return masters.wide + at;
  if (masters.fp16 != nullptr) {
    const tensor::Float16* from = masters.fp16 + at;
    float* masters_there = room.data();
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) masters_there[i] = tensor::master_of_half(from[i]);
    return masters_there;
  }
  const BFloat16* uppers = masters.weights + at;
  const std::int16_t* remainders = masters.remainders + at;
  float* out = room.data();
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = tensor::joined_float(uppers[i].bits, remainders[i]);
  return out;
}

void put_back(const Masters& masters, std::int64_t at, std::int64_t n, const float* values) {
  if (masters.weights == nullptr) return;
  BFloat16* weights = masters.weights + at;
  if (masters.wide != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) store(weights[i], values[i]);
    return;
  }
  if (masters.fp16 != nullptr) {
    tensor::Float16* kept = masters.fp16 + at;
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) {
      const tensor::Float16 half = tensor::half_of_master(values[i]);
      kept[i].bits = half.bits;
      store(weights[i], tensor::master_of_half(half));
    }
    return;
  }
  std::int16_t* remainders = masters.remainders + at;
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const tensor::SplitFloat halves = tensor::split_float(values[i]);
    weights[i].bits = halves.upper;
    remainders[i] = halves.remainder;
  }
}

// Gradients in memory, in one of two forms.
struct StoredGradients {
  const float* wide = nullptr;
  const BFloat16* bf16 = nullptr;
};

StoredGradients gradients_of(Stream& stream, const Tensor& x) {
  if (x.dtype() == DType::BF16) return {.bf16 = data<BFloat16>(stream, x)};
  return {.wide = data<float>(stream, x)};
}

const float* opened(const StoredGradients& gradients,
                    std::int64_t at,
                    std::int64_t n,
                    FloatBlock& room) {
  if (gradients.wide != nullptr) return gradients.wide + at;
  const BFloat16* from = gradients.bf16 + at;
  float* out = room.data();
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = load(from[i]);
  return out;
}

struct AdamWState {
  Masters masters;
  StoredMoment first, second;
  StoredGradients gradients;
};

void update_run(const AdamWState& state, Range run, float keep, const Factors& factors) {
  FloatBlock w_room, m_room, v_room, g_room;
  for (std::int64_t at = run.begin; at < run.end; at += kBlock) {
    const std::int64_t n = std::min(kBlock, run.end - at);
    float* w = opened(state.masters, at, n, w_room);
    float* m = opened<tensor::moment1_of_half>(state.first, at, n, m_room);
    float* v = opened<tensor::moment2_of_half>(state.second, at, n, v_room);
    update(w, m, v, opened(state.gradients, at, n, g_room), n, keep, factors);
    put_back(state.masters, at, n, w);
    put_back<tensor::half_of_moment1>(state.first, at, n, m_room);
    put_back<tensor::half_of_moment2>(state.second, at, n, v_room);
  }
}

}  // namespace

void masters_in_half(Stream& stream, Tensor master, Tensor weights) {
  auto* to = data<tensor::Float16>(stream, master);
  const BFloat16* from = data<BFloat16>(stream, weights);
  enqueue(stream, "masters_in_half", WorkClass::Memory, [=, n = weights.dim(0)](Workers& workers) {
    parallel(workers, cut_elements(n), [&](Range range) {
#pragma omp simd
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        to[i].bits = tensor::half_of_master(load(from[i])).bits;
      }
    });
  });
}

void adamw(Stream& stream,
           Tensor weights,
           Tensor master,
           Tensor moment1,
           Tensor moment2,
           Tensor gradient,
           const AdamW& options) {
  const AdamWState state{.masters = masters_of(stream, weights, master),
                         .first = moment_of(stream, moment1),
                         .second = moment_of(stream, moment2),
                         .gradients = gradients_of(stream, gradient)};
  const Factors factors = factors_of(options);
  const std::vector<ElementRun> undecayed = options.undecayed;
  enqueue(stream, "adamw", WorkClass::Memory, [=, n = weights.dim(0)](Workers& workers) {
    parallel(workers, cut_elements(n), [&](Range range) {
      for_each_run(range, undecayed, factors, [&](Range run, float keep) {
        update_run(state, run, keep, factors);
      });
    });
  });
}

}  // namespace weft::kernels::cpu
