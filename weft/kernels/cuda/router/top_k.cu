// Choice of the router. A warp takes a token. With probabilities renormalised to sum 1, a softmax
// over all experts and one over the chosen ones give the same numbers. So softmax has two cases:
// over all, and over the chosen. Other scores are functions of one logit each.
#include <algorithm>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/cuda/device/warps.h"
#include "weft/kernels/cuda/router/ordinal.h"
#include "weft/kernels/cuda/router/scores.h"

namespace weft::kernels::cuda {
namespace top_k_kernels {
namespace {

constexpr int kWarps = 4;
// Limit from the shared memory of a block of one warp.
constexpr std::int64_t kMostExperts = 4096;

struct Router {
  Matrix<float> logits, p;
  Matrix<std::int32_t> experts;
  TopK options;

  __device__ int all() const { return int(logits.columns); }
  __device__ int k() const { return int(p.columns); }
};

Router take(Stream& stream,
            const Tensor& p,
            const Tensor& experts,
            const Tensor& logits,
            const TopK& options) {
  return {matrix<float>(stream, logits),
          matrix<float>(stream, p),
          matrix<std::int32_t>(stream, experts),
          options};
}

enum class Over { AllExperts, ChosenExperts };

__device__ Over softmax_over(const TopK& options) {
  return options.softmax == TopK::Softmax::AfterSelection ||
                 options.renormalise == TopK::Renormalise::Yes
             ? Over::ChosenExperts
             : Over::AllExperts;
}

// Part of the shared memory for a warp: room for one number per expert, three times.
struct Desk {
  float *keys, *worths;
  std::int32_t* chosen;
};

__device__ Desk own_desk(int experts) {
  extern __shared__ float shared[];
  float* begin = shared + int(threadIdx.x) / kWarp * 3 * experts;
  return {begin, begin + experts, reinterpret_cast<std::int32_t*>(begin + 2 * experts)};
}

__device__ int count_from(std::uint32_t least, const float* keys, int n) {
  int count = 0;
  for (int e = lane(); e < n; e += kWarp) count += ordinal(keys[e]) >= least;
  return __reduce_add_sync(kAllLanes, count);
}

// Ordinal that at least k keys reach: k, or more if several have that very ordinal. It is found bit
// by bit.
__device__ std::uint32_t least_of_largest(const float* keys, int n, int k) {
  std::uint32_t least = 0;
  for (std::uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    const int count = count_from(least | bit, keys, n);
    if (count >= k) least |= bit;
    if (count == k) break;
  }
  return least;
}

// Chooses the k largest, equal ones by ascending index. The result is in ascending order of index.
__device__ void choose(std::int32_t* chosen, int k, const float* keys, int n) {
  __syncwarp();  // the keys are written, and the last choice is read
  const std::uint32_t least = least_of_largest(keys, n, k);
  int equal_left = k - count_from(least + 1, keys, n);
  int held = 0;
  for (int begin = 0; begin < n; begin += kWarp) {
    const int e = begin + lane();
    const std::uint32_t own = e < n ? ordinal(keys[e]) : 0;
    const unsigned equal = __ballot_sync(kAllLanes, e < n && own == least);
    const bool best_of_equal = own == least && __popc(equal & lanes_below()) < equal_left;
    const bool takes = e < n && (own > least || best_of_equal);
    const unsigned taken = __ballot_sync(kAllLanes, takes);
    if (takes) chosen[held + __popc(taken & lanes_below())] = e;
    held += __popc(taken);
    equal_left -= __popc(equal);
  }
  __syncwarp();
}

__device__ void fill_keys(float* keys, const float* x, const float* bias, const Router& router) {
  const TopK& options = router.options;
  const bool softmax = options.score == Score::Softmax;
  const bool by_logits = softmax && (options.softmax == TopK::Softmax::AfterSelection ||
                                     (bias == nullptr && options.groups.groups == 1));
  const float lse = softmax && !by_logits ? warp_log_sum_exp(x, router.all()) : 0.0f;
  for (int e = lane(); e < router.all(); e += kWarp) {
    float key = by_logits ? x[e] : softmax ? expf(x[e] - lse) : own_score(options.score, x[e]);
    if (bias != nullptr) key += bias[e];
    keys[e] = key;
  }
}

// Sets keys outside the best groups to -infinity.
__device__ void keep_best_groups(const Desk& desk, int experts, const GroupLimit& limit) {
  const int groups = int(limit.groups), size = experts / groups, counted = int(limit.counted);
  for (int g = 0; g < groups; ++g) {
    const float* keys = desk.keys + g * size;
    choose(desk.chosen, counted, keys, size);
    float worth = 0;
    for (int j = 0; j < counted; ++j) worth += keys[desk.chosen[j]];
    if (lane() == 0) desk.worths[g] = worth;
  }
  choose(desk.chosen, int(limit.kept), desk.worths, groups);
  float* is_kept = desk.worths;  // its name from here on
  for (int g = lane(); g < groups; g += kWarp) is_kept[g] = 0;
  __syncwarp();
  for (int j = lane(); j < int(limit.kept); j += kWarp) is_kept[desk.chosen[j]] = 1;
  __syncwarp();
  for (int e = lane(); e < experts; e += kWarp) {
    if (is_kept[e / size] == 0) desk.keys[e] = __int_as_float(0xff800000);
  }
}

__device__ void own_probabilities(float* p,
                                  const std::int32_t* chosen,
                                  const float* x,
                                  const Router& router) {
  const TopK& options = router.options;
  float sum = 0;
  for (int j = lane(); j < router.k(); j += kWarp) sum += own_score(options.score, x[chosen[j]]);
  sum = warp_sum(sum);
  const float divisor = options.renormalise == TopK::Renormalise::Yes ? sum + kLeastSum : 1.0f;
  for (int j = lane(); j < router.k(); j += kWarp) {
    p[j] = own_score(options.score, x[chosen[j]]) / divisor * options.factor;
  }
}

__device__ void softmax_of_chosen(float* p,
                                  const std::int32_t* chosen,
                                  const float* x,
                                  const Router& router) {
  float shift = x[chosen[0]];
  for (int j = lane(); j < router.k(); j += kWarp) shift = fmaxf(shift, x[chosen[j]]);
  shift = warp_max(shift);
  float sum = 0;
  for (int j = lane(); j < router.k(); j += kWarp) sum += expf(x[chosen[j]] - shift);
  sum = warp_sum(sum);
  for (int j = lane(); j < router.k(); j += kWarp) {
    p[j] = expf(x[chosen[j]] - shift) / sum * router.options.factor;
  }
}

__device__ void softmax_of_all(float* p,
                               const std::int32_t* chosen,
                               const float* x,
                               const Router& router) {
  const float lse = warp_log_sum_exp(x, router.all());
  for (int j = lane(); j < router.k(); j += kWarp) {
    p[j] = expf(x[chosen[j]] - lse) * router.options.factor;
  }
}

__device__ void probabilities(float* p,
                              const std::int32_t* chosen,
                              const float* x,
                              const Router& router) {
  if (router.options.score != Score::Softmax) {
    own_probabilities(p, chosen, x, router);
  } else if (softmax_over(router.options) == Over::ChosenExperts) {
    softmax_of_chosen(p, chosen, x, router);
  } else {
    softmax_of_all(p, chosen, x, router);
  }
}

// `bias`; nullptr: none.
__global__ void forward(Router router, const float* bias) {
  const TopK& options = router.options;
  const Desk desk = own_desk(router.all());
  for (std::int64_t t = first_warp(); t < router.p.rows; t += warp_step()) {
    const float* x = router.logits.row(t);
    fill_keys(desk.keys, x, bias, router);
    if (options.groups.groups > 1) keep_best_groups(desk, router.all(), options.groups);
    choose(desk.chosen, router.k(), desk.keys, router.all());
    for (int j = lane(); j < router.k(); j += kWarp) router.experts.row(t)[j] = desk.chosen[j];
    probabilities(router.p.row(t), desk.chosen, x, router);
  }
}

// Slots of one token in the backward. dp and p are as given, with the factor.
struct Slots {
  const std::int32_t* chosen;
  const float *p, *dp;
  float dot;  // sum of p dp, over the factor
};

// Softmax s, with its chosen part q: dlogits = s * (dq - sum(q dq)). For an expert that was not
// chosen dq is zero; over the chosen experts s is zero too. p = factor q and dq = factor dp.
__device__ void softmax_dgrad(float* dx, const float* x, const Slots& slots, const Router& router) {
  if (softmax_over(router.options) == Over::AllExperts) {
    const float lse = warp_log_sum_exp(x, router.all());
    const float total = router.options.factor * slots.dot;
    for (int e = lane(); e < router.all(); e += kWarp) dx[e] = -expf(x[e] - lse) * total;
    __syncwarp();
  }
  for (int j = lane(); j < router.k(); j += kWarp) {
    dx[slots.chosen[j]] = slots.p[j] * (slots.dp[j] - slots.dot);
  }
}

// Score s, with q = s / sum(s): ds = (dq - sum(q dq)) / sum(s), or dq if nothing divides.
__device__ void own_score_dgrad(float* dx,
                                const float* x,
                                const Slots& slots,
                                const Router& router) {
  const TopK& options = router.options;
  float sum = 0;
  for (int j = lane(); j < router.k(); j += kWarp) {
    sum += own_score(options.score, x[slots.chosen[j]]);
  }
  sum = warp_sum(sum);
  const bool divides = options.renormalise == TopK::Renormalise::Yes;
  for (int j = lane(); j < router.k(); j += kWarp) {
    const float logit = x[slots.chosen[j]], s = own_score(options.score, logit);
    const float ds = divides ? (slots.dp[j] - slots.dot) / (sum + kLeastSum) : slots.dp[j];
    dx[slots.chosen[j]] = options.factor * ds * own_slope(options.score, logit, s);
  }
}

// Raises a fault if one of the k experts does not exist.
__device__ bool all_in_range(const std::int32_t* chosen, const Router& router, Faults faults) {
  for (int begin = 0; begin < router.k(); begin += kWarp) {
    const int j = begin + lane();
    const std::int32_t e = j < router.k() ? chosen[j] : 0;
    const bool beyond = e < 0 || e >= router.all();
    const unsigned wrong = __ballot_sync(kAllLanes, beyond);
    if (wrong == 0) continue;
    if (beyond && (wrong & lanes_below()) == 0) {
      faults.raise(FaultCode::ExpertOutOfRange, e, router.all());
    }
    return false;
  }
  return true;
}

__global__ void weigh(Router router, Faults faults) {
  for (std::int64_t t = first_warp(); t < router.p.rows; t += warp_step()) {
    const std::int32_t* chosen = router.experts.row(t);
    if (!all_in_range(chosen, router, faults)) continue;
    probabilities(router.p.row(t), chosen, router.logits.row(t), router);
  }
}

__global__ void dgrad(Matrix<float> dlogits, Matrix<float> dp, Router router, Faults faults) {
  for (std::int64_t t = first_warp(); t < dlogits.rows; t += warp_step()) {
    Slots slots{router.experts.row(t), router.p.row(t), dp.row(t), 0};
    if (!all_in_range(slots.chosen, router, faults)) continue;
    float dot = 0;
    for (int j = lane(); j < router.k(); j += kWarp) dot += slots.p[j] * slots.dp[j];
    slots.dot = warp_sum(dot) / router.options.factor;
    float* dx = dlogits.row(t);
    for (int e = lane(); e < router.all(); e += kWarp) dx[e] = 0;
    __syncwarp();
    if (router.options.score == Score::Softmax) {
      softmax_dgrad(dx, router.logits.row(t), slots, router);
    } else {
      own_score_dgrad(dx, router.logits.row(t), slots, router);
    }
  }
}

}  // namespace
}  // namespace top_k_kernels

void top_k_forward(Stream& stream,
                   Tensor p,
                   Tensor experts,
                   Tensor logits,
                   Tensor bias,
                   const TopK& options) {
  const std::int64_t all = logits.dim(1);
  CHECK(all <= top_k_kernels::kMostExperts,
        "the best of {} experts; this device has room for {}",
        all,
        top_k_kernels::kMostExperts);
  const std::int64_t warps =
      std::clamp<std::int64_t>(top_k_kernels::kMostExperts / all, 1, top_k_kernels::kWarps);
  const Grid grid{blocks_for(p.dim(0), int(warps)),
                  unsigned(warps * kWarp),
                  std::size_t(warps * 3 * all) * sizeof(float)};
  enqueue(stream,
          "top_k_forward",
          WorkClass::Memory,
          grid,
          top_k_kernels::forward,
          top_k_kernels::take(stream, p, experts, logits, options),
          data_or_null<float>(stream, bias));
}

void probabilities_of_choice(Stream& stream,
                             Tensor p,
                             Tensor experts,
                             Tensor logits,
                             const TopK& options) {
  const top_k_kernels::Router router = top_k_kernels::take(stream, p, experts, logits, options);
  const Faults faults(stream);
  enqueue(stream,
          "probabilities_of_choice",
          WorkClass::Memory,
          {blocks_for(p.dim(0), top_k_kernels::kWarps), top_k_kernels::kWarps * kWarp},
          top_k_kernels::weigh,
          router,
          faults);
}

void top_k_dgrad(Stream& stream,
                 Tensor dlogits,
                 Tensor dp,
                 Tensor p,
                 Tensor experts,
                 Tensor logits,
                 const TopK& options) {
  const top_k_kernels::Router router = top_k_kernels::take(stream, p, experts, logits, options);
  const Matrix<float> dxs = matrix<float>(stream, dlogits), dps = matrix<float>(stream, dp);
  const Faults faults(stream);
  enqueue(stream,
          "top_k_dgrad",
          WorkClass::Memory,
          {blocks_for(dxs.rows, top_k_kernels::kWarps), top_k_kernels::kWarps * kWarp},
          top_k_kernels::dgrad,
          dxs,
          dps,
          router,
          faults);
}

}  // namespace weft::kernels::cuda
