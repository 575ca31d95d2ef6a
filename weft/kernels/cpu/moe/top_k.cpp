// Router's choice. Renormalised to sum 1, a softmax over all experts equals one over the chosen.
// Softmax therefore has two cases: over all experts, and over the chosen. Other scores are
// functions of one logit each.
#include <algorithm>
#include <limits>
#include <vector>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/moe/scores.h"
#include "weft/kernels/cpu/operations.h"

namespace weft::kernels::cpu {

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
  TopK options;
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

// Selects the k largest, equal ones by ascending index; then sorts them by index.
void choose(std::int32_t* chosen, std::int64_t k, const float* keys, std::int64_t n) {
  for (std::int64_t e = 0, held = 0; e < n; ++e) {
    if (held == k && !(keys[e] > keys[chosen[k - 1]])) continue;
    std::int64_t at = held < k ? held++ : k - 1;
    for (; at > 0 && keys[e] > keys[chosen[at - 1]]; --at) chosen[at] = chosen[at - 1];
    chosen[at] = static_cast<std::int32_t>(e);
  }
  std::sort(chosen, chosen + k);
}

// Selection state of one thread.
class Chooser {
 public:
  Chooser(const TopK& options, const float* bias, std::int64_t experts)
      : options_(options),
        bias_(bias),
        experts_(experts),
        size_(experts / options.groups.groups),
        keys_(at(experts)),
        worths_(at(options.groups.groups)),
        best_(at(std::max(options.groups.kept, options.groups.counted))) {}

  void choose_experts(std::int32_t* chosen, std::int64_t k, const float* logits) {
    const bool by_logits = options_.score == Score::Softmax && bias_ == nullptr;
    if (by_logits && options_.groups.groups == 1) return choose(chosen, k, logits, experts_);
    fill_keys(logits);
    if (options_.groups.groups > 1) keep_best_groups();
    choose(chosen, k, keys_.data(), experts_);
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  void fill_keys(const float* logits) {
    const bool softmax = options_.score == Score::Softmax;
    const bool before = options_.softmax == TopK::Softmax::BeforeSelection;
    const float lse = softmax && before ? log_sum_exp(logits, experts_) : 0.0f;
    for (std::int64_t e = 0; e < experts_; ++e) {
      const float x = logits[e];
      float& key = keys_[at(e)];
      key = !softmax ? own_score(options_.score, x) : before ? exp_f32(x - lse) : x;
      if (bias_ != nullptr) key += bias_[e];
    }
  }

  void keep_best_groups() {
    const GroupLimit& groups = options_.groups;
    for (std::int64_t g = 0; g < groups.groups; ++g) {
      const float* keys = keys_.data() + g * size_;
      choose(best_.data(), groups.counted, keys, size_);
      float& worth = worths_[at(g)];
      worth = 0;
      for (std::int64_t j = 0; j < groups.counted; ++j) worth += keys[best_[at(j)]];
    }
    choose(best_.data(), groups.kept, worths_.data(), groups.groups);
    std::int64_t next = 0;
    for (std::int64_t g = 0; g < groups.groups; ++g) {
      if (next < groups.kept && best_[at(next)] == g) {
        ++next;
      } else {
        std::fill_n(keys_.begin() + g * size_, size_, -std::numeric_limits<float>::infinity());
      }
    }
  }

  TopK options_;
  const float* bias_;
  std::int64_t experts_, size_;  // all groups; one group
  std::vector<float> keys_, worths_;
  std::vector<std::int32_t> best_;
};

void softmax_of_chosen(float* p, const std::int32_t* chosen, std::int64_t k, const float* logits) {
  float shift = logits[chosen[0]];
  for (std::int64_t j = 1; j < k; ++j) shift = std::max(shift, logits[chosen[j]]);
  float sum = 0;
  for (std::int64_t j = 0; j < k; ++j) sum += p[j] = exp_f32(logits[chosen[j]] - shift);
  for (std::int64_t j = 0; j < k; ++j) p[j] /= sum;
}

// Probabilities without the factor.
void unscaled_probabilities(float* p,
                            const std::int32_t* chosen,
                            const float* x,
                            const Router& router) {
  const TopK& options = router.options;
  const std::int64_t all = router.logits.columns, k = router.p.columns;
  if (options.score != Score::Softmax) {
    float sum = 0;
    for (std::int64_t j = 0; j < k; ++j) sum += p[j] = own_score(options.score, x[chosen[j]]);
    if (options.renormalise == TopK::Renormalise::No) return;
    for (std::int64_t j = 0; j < k; ++j) p[j] /= sum + kLeastSum;
  } else if (softmax_over(options) == Over::ChosenExperts) {
    softmax_of_chosen(p, chosen, k, x);
  } else {
    const float lse = log_sum_exp(x, all);
    for (std::int64_t j = 0; j < k; ++j) p[j] = exp_f32(x[chosen[j]] - lse);
  }
}

void probabilities(float* p, const std::int32_t* chosen, const float* x, const Router& router) {
  unscaled_probabilities(p, chosen, x, router);
  for (std::int64_t j = 0; j < router.p.columns; ++j) p[j] *= router.options.factor;
}

// True if all k experts are in range; otherwise raises a fault.
bool all_in_range(const std::int32_t* chosen, const Router& router, const Faults& faults) {
  const std::int64_t all = router.logits.columns, k = router.p.columns;
  const auto* beyond =
      std::find_if(chosen, chosen + k, [&](std::int32_t e) { return e < 0 || e >= all; });
  if (beyond == chosen + k) return true;
  faults.raise(FaultCode::ExpertOutOfRange, {*beyond, all});
  return false;
}

// One token's slots in dgrad; dp and p include the factor.
struct Slots {
  const std::int32_t* chosen;
  const float *p, *dp;
  float dot;  // sum of p dp, divided by the factor
};

// dlogits = s * (dq - sum(q dq)); s is the softmax, q its chosen part. dq is 0 for an expert that
// was not chosen; so is s if the softmax is over the chosen. p = factor q, and dq = factor dp.
void softmax_dgrad(float* dx, const float* x, const Slots& slots, const Router& router) {
  const float factor = router.options.factor;
  if (softmax_over(router.options) == Over::AllExperts) {
    const float lse = log_sum_exp(x, router.logits.columns);
    const float total = factor * slots.dot;
    for (std::int64_t e = 0; e < router.logits.columns; ++e) dx[e] = -exp_f32(x[e] - lse) * total;
  }
  for (std::int64_t j = 0; j < router.p.columns; ++j) {
    dx[slots.chosen[j]] = slots.p[j] * (slots.dp[j] - slots.dot);
  }
}

// ds = (dq - sum(q dq)) / sum(s) with q = s / sum(s), or ds = dq if scores are not divided; s is
// the score.
void own_score_dgrad(float* dx, const float* x, const Slots& slots, const Router& router) {
  const TopK& options = router.options;
  float sum = 0;
  for (std::int64_t j = 0; j < router.p.columns; ++j) {
    sum += own_score(options.score, x[slots.chosen[j]]);
  }
  const bool divides = options.renormalise == TopK::Renormalise::Yes;
  for (std::int64_t j = 0; j < router.p.columns; ++j) {
    const float logit = x[slots.chosen[j]], s = own_score(options.score, logit);
    const float ds = divides ? (slots.dp[j] - slots.dot) / (sum + kLeastSum) : slots.dp[j];
    dx[slots.chosen[j]] = options.factor * ds * own_slope(options.score, logit, s);
  }
}

}  // namespace

void top_k_forward(Stream& stream,
                   Tensor p,
                   Tensor experts,
                   Tensor logits,
                   Tensor bias,
                   const TopK& options) {
  const Router router = take(stream, p, experts, logits, options);
  const float* biases = nullptr;
  if (bias.defined()) {
    biases = data<float>(stream, bias);
  }
  enqueue(stream, "top_k_forward", WorkClass::Memory, [router, biases](Workers& workers) {
    const std::int64_t all = router.logits.columns, k = router.p.columns;
    parallel(workers, cut_rows(router.p.rows, all * k), [&](Range rows) {
      Chooser chooser(router.options, biases, all);
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        std::int32_t* chosen = router.experts.row(t);
        chooser.choose_experts(chosen, k, router.logits.row(t));
        probabilities(router.p.row(t), chosen, router.logits.row(t), router);
      }
    });
  });
}

void probabilities_of_choice(Stream& stream,
                             Tensor p,
                             Tensor experts,
                             Tensor logits,
                             const TopK& options) {
  const Router router = take(stream, p, experts, logits, options);
  const Faults faults(stream);
  enqueue(stream, "probabilities_of_choice", WorkClass::Memory, [=](Workers& workers) {
    parallel(workers, cut_rows(router.p.rows, router.logits.columns), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const std::int32_t* chosen = router.experts.row(t);
        if (!all_in_range(chosen, router, faults)) return;
        probabilities(router.p.row(t), chosen, router.logits.row(t), router);
      }
    });
  });
}

void top_k_dgrad(Stream& stream,
                 Tensor dlogits,
                 Tensor dp,
                 Tensor p,
                 Tensor experts,
                 Tensor logits,
                 const TopK& options) {
  const Router router = take(stream, p, experts, logits, options);
  const Matrix<float> dxs = matrix<float>(stream, dlogits), dps = matrix<float>(stream, dp);
  const Faults faults(stream);
  enqueue(stream, "top_k_dgrad", WorkClass::Memory, [=](Workers& workers) {
    const std::int64_t all = router.logits.columns, k = router.p.columns;
    parallel(workers, cut_rows(dxs.rows, all), [&](Range rows) {
      for (std::int64_t t = rows.begin; t < rows.end; ++t) {
        const float *p_k = router.p.row(t), *dp_k = dps.row(t);
        const std::int32_t* chosen = router.experts.row(t);
        if (!all_in_range(chosen, router, faults)) return;
        float dot = 0;
        for (std::int64_t j = 0; j < k; ++j) dot += p_k[j] * dp_k[j];
        const Slots slots{.chosen = chosen,
                          .p = p_k,
                          .dp = dp_k,
                          .dot = dot / router.options.factor};
        float* dx = dxs.row(t);
        std::fill_n(dx, all, 0.0f);
        if (router.options.score == Score::Softmax) {
          softmax_dgrad(dx, router.logits.row(t), slots, router);
        } else {
          own_score_dgrad(dx, router.logits.row(t), slots, router);
        }
      }
    });
  });
}

}  // namespace weft::kernels::cpu
