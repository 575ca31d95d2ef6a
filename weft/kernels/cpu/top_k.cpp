// The router's choice. With probabilities renormalised to sum 1, a softmax over all experts and one
// over the chosen ones are the same numbers, so there are two cases: over all, and over the chosen.
#include <algorithm>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/vector_math.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels {

using namespace cpu;

namespace {

enum class Over { AllExperts, ChosenExperts };

Over softmax_over(const TopK& options) {
  return options.softmax == TopK::Softmax::AfterSelection ||
                 options.renormalise == TopK::Renormalise::Yes
             ? Over::ChosenExperts
             : Over::AllExperts;
}

struct Router {
  Matrix<float> logits, p;
  Matrix<std::int32_t> experts;
  Over over;
};

Router take(Stream& stream,
            const Tensor& p,
            const Tensor& experts,
            const Tensor& logits,
            const TopK& options) {
  const auto [rows, all] = matrix_shape("logits", logits);
  const std::int64_t k = matrix_shape("p", p).columns;
  CHECK(k >= 1 && k <= all, "the best {} of {} experts", k, all);
  check_matrix("p", p, rows, k);
  check_matrix("experts", experts, rows, k);
  check_dtype("logits", logits, DType::F32);
  check_dtype("p", p, DType::F32);
  check_dtype("experts", experts, DType::I32);
  return {matrix<float>(stream, logits),
          matrix<float>(stream, p),
          matrix<std::int32_t>(stream, experts),
          softmax_over(options)};
}

// The k largest, equal ones by ascending expert; then in ascending order of expert.
void choose(std::int32_t* chosen, std::int64_t k, const float* logits, std::int64_t experts) {
  for (std::int64_t e = 0, held = 0; e < experts; ++e) {
    if (held == k && !(logits[e] > logits[chosen[k - 1]])) continue;
    std::int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && logits[e] > logits[chosen[at - 1]]; --at) chosen[at] = chosen[at - 1];
    chosen[at] = static_cast<std::int32_t>(e);
  }
  std::sort(chosen, chosen + k);
}

void softmax_of_chosen(float* p, const std::int32_t* chosen, std::int64_t k, const float* logits) {
  float shift = logits[chosen[0]];
  for (std::int64_t j = 1; j < k; ++j) shift = std::max(shift, logits[chosen[j]]);
  float sum = 0;
  for (std::int64_t j = 0; j < k; ++j) sum += p[j] = exp_f32(logits[chosen[j]] - shift);
  for (std::int64_t j = 0; j < k; ++j) p[j] /= sum;
}

}  // namespace

void top_k_forward(Stream& stream, Tensor p, Tensor experts, Tensor logits, const TopK& options) {
  const Router router = take(stream, p, experts, logits, options);
  stream.enqueue("top_k_forward", WorkClass::Memory, [router](Workers& workers) {
    const std::int64_t all = router.logits.columns, k = router.p.columns;
    parallel(workers, cut_rows(router.p.rows, all * k), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const float* x = router.logits.row(t);
        std::int32_t* chosen = router.experts.row(t);
        float* prob = router.p.row(t);
        choose(chosen, k, x, all);
        if (router.over == Over::ChosenExperts) {
          softmax_of_chosen(prob, chosen, k, x);
        } else {
          const float lse = log_sum_exp(x, all);
          for (std::int64_t j = 0; j < k; ++j) prob[j] = exp_f32(x[chosen[j]] - lse);
        }
      }
    });
  });
}

// With s the softmax and p its chosen part: dlogits = s * (dp - sum(p dp)), where dp and, over the
// chosen experts, s are zero for an expert that was not chosen.
void top_k_dgrad(Stream& stream,
                 Tensor dlogits,
                 Tensor dp,
                 Tensor p,
                 Tensor experts,
                 Tensor logits,
                 const TopK& options) {
  const Router router = take(stream, p, experts, logits, options);
  check_matrix("dlogits", dlogits, logits.dim(0), logits.dim(1));
  check_matrix("dp", dp, p.dim(0), p.dim(1));
  const Matrix<float> dxs = matrix<float>(stream, dlogits), dps = matrix<float>(stream, dp);
  stream.enqueue("top_k_dgrad", WorkClass::Memory, [=](Workers& workers) {
    const std::int64_t all = router.logits.columns, k = router.p.columns;
    parallel(workers, cut_rows(dxs.rows, all), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const float *prob = router.p.row(t), *dprob = dps.row(t), *x = router.logits.row(t);
        float* dx = dxs.row(t);
        float dot = 0;
        for (std::int64_t j = 0; j < k; ++j) dot += prob[j] * dprob[j];
        std::fill_n(dx, all, 0.0f);
        if (router.over == Over::AllExperts) {
          const float lse = log_sum_exp(x, all);
          for (std::int64_t e = 0; e < all; ++e) dx[e] = -exp_f32(x[e] - lse) * dot;
        }
        for (std::int64_t j = 0; j < k; ++j) {
          const std::int32_t e = router.experts.row(t)[j];
          CHECK(e >= 0 && e < all, "expert {} of {}", e, all);
          dx[e] = prob[j] * (dprob[j] - dot);
        }
      }
    });
  });
}

}  // namespace weft::kernels
