// AdamW, which reads and writes memory once: a block takes a piece of the elements.
#include <algorithm>
#include <cmath>

#include "weft/kernels/cuda/arguments.h"
#include "weft/kernels/cuda/operations.h"
#include "weft/kernels/cuda/packs.h"

namespace weft::kernels::cuda {
namespace adamw_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 6;             // on a multiprocessor at once
constexpr int kPiece = kThreads * 16;  // elements of a block
// Runs without decay travel as an argument of the kernel, 16 KiB of the 32 KiB there are.
constexpr std::size_t kMostRuns = 1024;

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

// The elements that do not decay: runs in order.
struct Undecayed {
  ElementRun runs[kMostRuns];
  int count;

  // The first run that ends behind element i; `count` where none does.
  __device__ int first_behind(std::int64_t i) const {
    int low = 0, high = count;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (runs[middle].end > i) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
  // Whether element i is in one of the runs from `first` on.
  __device__ bool holds(std::int64_t i, int first) const {
    for (int r = first; r < count && runs[r].begin <= i; ++r) {
      if (i < runs[r].end) return true;
    }
    return false;
  }
};

struct State {
  BFloat16* rounded;  // the bf16 weights, or null where the master is the weights
  float *w, *m, *v;
  const float* g;
};

// Gives the new moments and returns the new weight; `keep` is what stays of the old one. Every
// rounding is written down as in cpu/adamw.cpp: state that moves between host and card keeps its
// bits.
__device__ float step(float w, float& m, float& v, float g, float keep, const Factors& f) {
  const float gradient = __fmul_rn(g, f.gradient_scale);
  const float m1 = __fmaf_rn(f.beta1, m, __fmul_rn(f.rest1, gradient));
  const float m2 = __fmaf_rn(f.beta2, v, __fmul_rn(__fmul_rn(f.rest2, gradient), gradient));
  m = m1;
  v = m2;
  const float change =
      __fdiv_rn(__fmul_rn(f.rate, m1), __fmaf_rn(__fsqrt_rn(m2), f.root, f.epsilon));
  return __fmaf_rn(keep, w, -change);
}

__device__ void update_one(const State& s, std::int64_t i, float keep, const Factors& f) {
  const float weight = step(s.w[i], s.m[i], s.v[i], s.g[i], keep, f);
  s.w[i] = weight;
  if (s.rounded != nullptr) store(s.rounded[i], weight);
}

template <Access kAccess>
__device__ void update_four(const State& s,
                            std::int64_t i,
                            const float (&keep)[4],
                            const Factors& f) {
  const Pack<float, 4> g = read_once<kAccess, 4>(s.g + i);
  const Pack<float, 4> old_w = read_once<kAccess, 4>(s.w + i);
  const Pack<float, 4> old_m = read_once<kAccess, 4>(s.m + i);
  const Pack<float, 4> old_v = read_once<kAccess, 4>(s.v + i);
  float w[4], m[4], v[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    m[j] = old_m[j];
    v[j] = old_v[j];
    w[j] = step(old_w[j], m[j], v[j], g[j], keep[j], f);
  }
  write_past_caches<kAccess>(s.w + i, w);
  write_past_caches<kAccess>(s.m + i, m);
  write_past_caches<kAccess>(s.v + i, v);
  if (s.rounded != nullptr) write_past_caches<kAccess>(s.rounded + i, w);
}

template <Access kAccess>
__global__ void __launch_bounds__(kThreads, kBlocks)
    update(State state, std::int64_t n, Factors f, __grid_constant__ const Undecayed undecayed) {
  const std::int64_t begin = std::int64_t(blockIdx.x) * kPiece;
  const std::int64_t end = begin + kPiece < n ? begin + kPiece : n;
  const int run = undecayed.first_behind(begin);
  const bool all_decay = run == undecayed.count || undecayed.runs[run].begin >= end;
  const auto keep_of = [&](std::int64_t i) {
    return all_decay || !undecayed.holds(i, run) ? f.keep : 1.0f;
  };
  for (std::int64_t i = begin + 4 * int(threadIdx.x); i < end; i += 4 * kThreads) {
    if (i + 4 <= end) {
      const float keep[4] = {keep_of(i), keep_of(i + 1), keep_of(i + 2), keep_of(i + 3)};
      update_four<kAccess>(state, i, keep, f);
    } else {
      for (std::int64_t j = i; j < end; ++j) update_one(state, j, keep_of(j), f);
    }
  }
}

bool starts_packs(const State& s) {
  return starts_pack(s.w) && starts_pack(s.m) && starts_pack(s.v) && starts_pack(s.g) &&
         starts_pack(s.rounded, 4);
}

Undecayed undecayed_of(const AdamW& options) {
  const std::vector<ElementRun>& runs = options.undecayed;
  CHECK(runs.size() <= kMostRuns,
        "{} runs without decay; this device has room for {}",
        runs.size(),
        kMostRuns);
  Undecayed undecayed{};
  std::ranges::copy(runs, undecayed.runs);
  undecayed.count = static_cast<int>(runs.size());
  return undecayed;
}

}  // namespace
}  // namespace adamw_kernels

void adamw(Stream& stream,
           Tensor weights,
           Tensor master,
           Tensor moment1,
           Tensor moment2,
           Tensor gradient,
           const AdamW& options) {
  const std::int64_t n = weights.dim(0);
  adamw_kernels::State state{.rounded = nullptr,
                             .w = data<float>(stream, master),
                             .m = data<float>(stream, moment1),
                             .v = data<float>(stream, moment2),
                             .g = data<float>(stream, gradient)};
  if (weights.dtype() == DType::BF16) {
    state.rounded = data<BFloat16>(stream, weights);
  } else {
    CHECK(data<float>(stream, weights) == state.w, "fp32 weights are their own master");
  }
  enqueue(stream,
          "adamw",
          WorkClass::Memory,
          {static_cast<unsigned>(divided_up(n, adamw_kernels::kPiece)), adamw_kernels::kThreads},
          adamw_kernels::starts_packs(state) ? adamw_kernels::update<Access::Packs>
                                             : adamw_kernels::update<Access::Elements>,
          state,
          n,
          adamw_kernels::factors_of(options),
          adamw_kernels::undecayed_of(options));
}

}  // namespace weft::kernels::cuda
