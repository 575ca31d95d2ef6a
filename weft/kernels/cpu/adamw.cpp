// AdamW, which reads and writes memory once.
#include <algorithm>
#include <cmath>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/vector_math.h"
#include "weft/kernels/cpu/work_cut.h"

namespace weft::kernels::cpu {

namespace {

// The options as the loop needs them, worked out once in fp64.
struct Factors {
  float gradient_scale, beta1, beta2, rest1, rest2;
  float keep;  // of the weight: 1 - learning rate * decay
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

// Calls body(elements, keep) for the runs of a range that decay alike; `keep` of the weight stays.
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

// m, v, g and w do not overlap, so the loop may be vectorised. Every rounding is written down:
// cuda/adamw.cu has the same, and so the same bits, because products, roots and quotients of both
// are rounded to nearest.
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

}  // namespace

void adamw(Stream& stream,
           Tensor weights,
           Tensor master,
           Tensor moment1,
           Tensor moment2,
           Tensor gradient,
           const AdamW& options) {
  const std::int64_t n = weights.dim(0);
  float* w = data<float>(stream, master);
  float* m = data<float>(stream, moment1);
  float* v = data<float>(stream, moment2);
  const float* g = data<float>(stream, gradient);
  BFloat16* rounded = nullptr;
  if (weights.dtype() == DType::BF16) {
    rounded = data<BFloat16>(stream, weights);
  } else {
    CHECK(data<float>(stream, weights) == w, "fp32 weights are their own master");
  }
  const Factors factors = factors_of(options);
  const std::vector<ElementRun> undecayed = options.undecayed;
  enqueue(stream, "adamw", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_elements(n), [&](Range range) {
      for_each_run(range, undecayed, factors, [&](Range run, float keep) {
        const std::int64_t at = run.begin;
        update(w + at, m + at, v + at, g + at, run.size(), keep, factors);
      });
      if (rounded == nullptr) return;
#pragma omp simd
      for (std::int64_t i = range.begin; i < range.end; ++i) store(rounded[i], w[i]);
    });
  });
}

}  // namespace weft::kernels::cpu
