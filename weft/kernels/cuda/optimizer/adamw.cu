// AdamW. It reads and writes memory once: a block takes a piece of the elements.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/optimizer/optimizer_state.h"

namespace weft::kernels::cuda {
namespace adamw_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 6;             // per multiprocessor
constexpr int kPiece = kThreads * 16;  // elements per block
// Runs without decay are an argument of the kernel: 16 KiB of its 32 KiB.
constexpr std::size_t kMostRuns = 1024;

// Options for the kernel, computed once in fp64.
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

// Elements without decay: runs in order.
struct Undecayed {
  ElementRun runs[kMostRuns];
  int count;

  // First run that ends behind element i; `count`: none does.
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
  // True if element i is in one of the runs from `first` on.
  __device__ bool holds(std::int64_t i, int first) const {
    for (int r = first; r < count && runs[r].begin <= i; ++r) {
      if (i < runs[r].end) return true;
    }
    return false;
  }
};

// Computes the new moments and returns the new weight. `keep` is the factor of the old one. Every
// rounding is written down as in cpu/adamw.cpp: state keeps its bits when it moves between host and
// card.
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

// Formats of the state, as constants.
template <MomentForm kFirstForm, MomentForm kSecondForm, MasterForm kMasterForm>
struct StateForms {
  static constexpr MomentForm kFirst = kFirstForm, kSecond = kSecondForm;
  static constexpr MasterForm kMaster = kMasterForm;
};

template <Access kAccess, typename Forms, int kCount>
__device__ void update_some(const OptimizerState& s,
                            std::int64_t i,
                            const float (&keep)[kCount],
                            const Factors& f) {
  float g[kCount], w[kCount], m[kCount], v[kCount];
  read_gradients<kAccess>(g, s, i);
  read_masters<kAccess, Forms::kMaster>(w, s, i);
  read_moment<kAccess, Forms::kFirst, WhichMoment::First>(m, s.m, i);
  read_moment<kAccess, Forms::kSecond, WhichMoment::Second>(v, s.v, i);
#pragma unroll
  for (int j = 0; j < kCount; ++j) w[j] = step(w[j], m[j], v[j], g[j], keep[j], f);
  write_masters<kAccess, Forms::kMaster>(s, i, w);
  write_moment<kAccess, Forms::kFirst, WhichMoment::First>(s.m, i, m);
  write_moment<kAccess, Forms::kSecond, WhichMoment::Second>(s.v, i, v);
}

template <Access kAccess, typename Forms>
__global__ void __launch_bounds__(kThreads, kBlocks)
    update(OptimizerState state,
           std::int64_t n,
           Factors f,
           __grid_constant__ const Undecayed undecayed) {
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
      update_some<kAccess, Forms>(state, i, keep, f);
    } else {
      for (std::int64_t j = i; j < end; ++j) {
        const float keep[1] = {keep_of(j)};
        update_some<kAccess, Forms>(state, j, keep, f);
      }
    }
  }
}

// Calls body with the form as a constant.
template <typename Body>
void with_moment(DType dtype, const Body& body) {
  if (dtype == DType::F32) return body(std::integral_constant<MomentForm, MomentForm::Fp32>{});
  if (dtype == DType::BF16) return body(std::integral_constant<MomentForm, MomentForm::Bf16>{});
  if (dtype == DType::F16) return body(std::integral_constant<MomentForm, MomentForm::Fp16>{});
  UNREACHABLE("moments of {}", tensor::name_of(dtype));
}
template <typename Body>
void with_master(DType dtype, const Body& body) {
  if (dtype == DType::F32) {
    body(std::integral_constant<MasterForm, MasterForm::Whole>{});
  } else if (dtype == DType::F16) {
    body(std::integral_constant<MasterForm, MasterForm::Half>{});
  } else {
    body(std::integral_constant<MasterForm, MasterForm::Remainder>{});
  }
}

OptimizerState state_of(Stream& stream,
                        const Tensor& weights,
                        const Tensor& master,
                        const Tensor& moment1,
                        const Tensor& moment2,
                        const Tensor& gradient) {
  OptimizerState state{.m = bytes_of(stream, moment1), .v = bytes_of(stream, moment2)};
  if (gradient.dtype() == DType::F32) {
    state.g = data<float>(stream, gradient);
  } else {
    state.narrow_g = data<BFloat16>(stream, gradient);
  }
  if (weights.dtype() == DType::BF16) state.rounded = data<BFloat16>(stream, weights);
  if (master.dtype() == DType::F32) {
    state.w = data<float>(stream, master);
  } else if (master.dtype() == DType::F16) {
    state.half = reinterpret_cast<std::uint16_t*>(bytes_of(stream, master));
  } else {
    state.remainder = reinterpret_cast<std::uint16_t*>(data<std::int16_t>(stream, master));
  }
  if (weights.dtype() == DType::F32) {
    CHECK(data<float>(stream, weights) == state.w, "fp32 weights are their own master");
  }
  return state;
}

__global__ void encode_masters(std::uint16_t* to, const BFloat16* from, std::int64_t n) {
  for (std::int64_t i = first_index(); i < n; i += index_step()) {
    to[i] = static_cast<std::uint16_t>(half_master_bits(load(from[i])));
  }
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

void masters_in_half(Stream& stream, Tensor master, Tensor weights) {
  namespace kernels = adamw_kernels;
  const std::int64_t n = weights.dim(0);
  enqueue(stream,
          "masters_in_half",
          WorkClass::Memory,
          {blocks_for(n, kernels::kThreads), kernels::kThreads},
          kernels::encode_masters,
          reinterpret_cast<std::uint16_t*>(bytes_of(stream, master)),
          static_cast<const BFloat16*>(data<BFloat16>(stream, weights)),
          n);
}

void adamw(Stream& stream,
           Tensor weights,
           Tensor master,
           Tensor moment1,
           Tensor moment2,
           Tensor gradient,
           const AdamW& options) {
  namespace kernels = adamw_kernels;
  const std::int64_t n = weights.dim(0);
  const OptimizerState state =
      kernels::state_of(stream, weights, master, moment1, moment2, gradient);
  const auto size = [](const Tensor& x) { return static_cast<int>(tensor::size_of(x.dtype())); };
  const bool packs = starts_fours(state, size(moment1), size(moment2));
  const kernels::Factors factors = kernels::factors_of(options);
  const kernels::Undecayed undecayed = kernels::undecayed_of(options);
  kernels::with_moment(moment1.dtype(), [&](auto first) {
    kernels::with_moment(moment2.dtype(), [&](auto second) {
      kernels::with_master(master.dtype(), [&](auto form) {
        using Forms = kernels::
            StateForms<decltype(first)::value, decltype(second)::value, decltype(form)::value>;
        enqueue(stream,
                "adamw",
                WorkClass::Memory,
                {static_cast<unsigned>(divided_up(n, kernels::kPiece)), kernels::kThreads},
                packs ? kernels::update<Access::Packs, Forms>
                      : kernels::update<Access::Elements, Forms>,
                state,
                n,
                factors,
                undecayed);
      });
    });
  });
}

}  // namespace weft::kernels::cuda
