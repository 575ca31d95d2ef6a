// AdamW, which reads and writes memory once.
#include <cmath>

#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/operations.h"

namespace weft::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// The options as the kernel needs them, worked out once in fp64.
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

// `rounded`: the bf16 weights, or null where the master is the weights.
__global__ void
update(BFloat16* rounded, float* w, float* m, float* v, const float* g, std::int64_t n, Factors f) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    const float gradient = g[i] * f.gradient_scale;
    const float m1 = f.beta1 * m[i] + f.rest1 * gradient;
    const float m2 = f.beta2 * v[i] + f.rest2 * gradient * gradient;
    const float weight = f.keep * w[i] - f.rate * m1 / (sqrtf(m2) * f.root + f.epsilon);
    w[i] = weight;
    m[i] = m1;
    v[i] = m2;
    if (rounded != nullptr) store(rounded[i], weight);
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
  BFloat16* rounded = nullptr;
  if (weights.dtype() == DType::BF16) {
    rounded = data<BFloat16>(stream, weights);
  } else {
    CHECK(data<float>(stream, weights) == w, "fp32 weights are their own master");
  }
  enqueue(stream,
          "adamw",
          WorkClass::Memory,
          {blocks_for(n, kThreads), kThreads},
          update,
          rounded,
          w,
          data<float>(stream, moment1),
          data<float>(stream, moment2),
          data<float>(stream, gradient),
          n,
          factors_of(options));
}

}  // namespace weft::kernels::cuda
