#include <numeric>

#include "tests/kernels/conformance_support.h"
#include "tests/kernels/scratch_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace router_test {

struct Sizes {
  std::int64_t t, e, k;
};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Scores of one token over all experts, in double.
Values scores_of(const double* logits, std::size_t n, Score score) {
  Values s;
  double sum = 0;
  for (std::size_t e = 0; e < n; ++e) sum += std::exp(logits[e]);
  for (std::size_t e = 0; e < n; ++e) {
    const double exponential = std::exp(logits[e]);
    s.push_back(score == Score::Softmax   ? exponential / sum
                : score == Score::Sigmoid ? 1 / (1 + std::exp(-logits[e]))
                                          : std::sqrt(std::log1p(exponential)));
  }
  return s;
}

// Indices of the n largest, equal ones by ascending index, ascending.
std::vector<std::size_t> largest(const Values& keys, std::int64_t n) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return keys[a] > keys[b];
  });
  order.resize(at(n));
  std::sort(order.begin(), order.end());
  return order;
}

// Lowers the keys of experts outside the best groups below all others.
Values limited(Values keys, const GroupLimit& groups) {
  const std::size_t size = keys.size() / at(groups.groups);
  Values worths;
  for (std::size_t g = 0; g < at(groups.groups); ++g) {
    const Values part(keys.begin() + long(g * size), keys.begin() + long((g + 1) * size));
    worths.push_back(0);
    for (const std::size_t e : largest(part, groups.counted)) worths.back() += part[e];
  }
  const std::vector<std::size_t> best = largest(worths, groups.kept);
  for (std::size_t e = 0; e < keys.size(); ++e) {
    if (!std::binary_search(best.begin(), best.end(), e / size)) keys[e] = -1e30;
  }
  return keys;
}

struct Choice {
  Values p, experts;
};

bool after_selection(const TopK& options) {
  return options.score == Score::Softmax && options.softmax == TopK::Softmax::AfterSelection;
}

// Probabilities of any choice of experts.
Values probabilities(const Sizes& s,
                     const Values& logits,
                     const Values& experts,
                     const TopK& options) {
  Values p;
  const bool one = after_selection(options) || options.renormalise == TopK::Renormalise::Yes;
  for (std::size_t t = 0; t < at(s.t); ++t) {
    const Values scores = scores_of(logits.data() + t * at(s.e), at(s.e), options.score);
    const double* chosen = experts.data() + t * at(s.k);
    double sum = 0;
    for (std::size_t j = 0; j < at(s.k); ++j) sum += scores[std::size_t(chosen[j])];
    for (std::size_t j = 0; j < at(s.k); ++j) {
      p.push_back(double(options.factor) * scores[std::size_t(chosen[j])] / (one ? sum : 1));
    }
  }
  return p;
}

Choice reference(const Sizes& s, const Values& logits, const Values& bias, const TopK& options) {
  Choice choice;
  for (std::size_t t = 0; t < at(s.t); ++t) {
    const double* row = logits.data() + t * at(s.e);
    Values keys =
        after_selection(options) ? Values(row, row + s.e) : scores_of(row, at(s.e), options.score);
    for (std::size_t e = 0; e < bias.size(); ++e) keys[e] += bias[e];
    for (const std::size_t e : largest(limited(keys, options.groups), s.k)) {
      choice.experts.push_back(double(e));
    }
  }
  choice.p = probabilities(s, logits, choice.experts, options);
  return choice;
}

void add_top_k(std::vector<Case>& cases,
               const Sizes& s,
               const TopK& options,
               const Values& bias,
               const char* variant) {
  const Shape ls{s.t, s.e}, ps{s.t, s.k};
  const auto name = [&](const char* op) {
    return base::text("{}_{}_{}x{}x{}", op, variant, s.t, s.e, s.k);
  };
  const Argument logits = strided(input("logits", DType::F32, ls, draw(1, ls, 2)));
  const Choice choice = reference(s, logits.values, bias, options);
  const Argument dp = strided(input("dp", DType::F32, ps, draw(2, ps)));
  const Argument p = strided(input("p", DType::F32, ps, choice.p));
  const Argument experts = strided(input("experts", DType::I32, ps, choice.experts));
  std::vector<Argument> arguments{strided(output("p", DType::F32, ps)),
                                  strided(output("experts", DType::I32, ps)),
                                  logits};
  if (!bias.empty()) arguments.push_back(input("bias", DType::F32, {s.e}, bias));
  cases.push_back(
      {name("top_k_forward"),
       arguments,
       [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         top_k_forward(stream, a[0], a[1], a[2], a.size() > 3 ? a[3] : Tensor(), options);
       },
       [=](const std::vector<Argument>&) {
         return std::vector{whole(0, choice.p, 1e-6), whole(1, choice.experts, 0)};
       }});
  cases.push_back(
      {name("top_k_dgrad"),
       {strided(output("dlogits", DType::F32, ls)), dp, p, experts, logits},
       [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         top_k_dgrad(stream, a[0], a[1], a[2], a[3], a[4], options);
       },
       [=](const std::vector<Argument>&) {
         const auto loss = [&](std::int64_t t, const Values& row) {
           return dot(row_of(dp.values, s.k, t), reference({1, s.e, s.k}, row, bias, options).p);
         };
         return std::vector{finite_difference_by_rows(0, logits.values, s.e, loss, 3e-6)};
       }});
}

// Experts that no router would choose: the next after the best, out of order.
Values other_experts(const Sizes& s, const Values& best) {
  Values others;
  for (const double e : best) others.push_back(double((std::int64_t(e) + 1) % s.e));
  return others;
}

void add_given_choice(std::vector<Case>& cases,
                      const Sizes& s,
                      const TopK& options,
                      const char* variant) {
  const Shape ls{s.t, s.e}, ps{s.t, s.k};
  const auto name = [&](const char* op) {
    return base::text("{}_{}_{}x{}x{}", op, variant, s.t, s.e, s.k);
  };
  const Argument logits = strided(input("logits", DType::F32, ls, draw(1, ls, 2)));
  const Values given = other_experts(s, reference(s, logits.values, {}, options).experts);
  const Values expected = probabilities(s, logits.values, given, options);
  const Argument experts = strided(input("experts", DType::I32, ps, given));
  const Argument p = strided(input("p", DType::F32, ps, expected));
  const Argument dp = strided(input("dp", DType::F32, ps, draw(2, ps)));
  cases.push_back(
      {name("probabilities_of_choice"),
       {strided(output("p", DType::F32, ps)), experts, logits},
       [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         probabilities_of_choice(stream, a[0], a[1], a[2], options);
       },
       [=](const std::vector<Argument>&) { return std::vector{whole(0, expected, 1e-6)}; }});
  cases.push_back({name("top_k_dgrad_of_choice"),
                   {strided(output("dlogits", DType::F32, ls)), dp, p, experts, logits},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     top_k_dgrad(stream, a[0], a[1], a[2], a[3], a[4], options);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](std::int64_t t, const Values& row) {
                       const Values chosen = row_of(given, s.k, t);
                       return dot(row_of(dp.values, s.k, t),
                                  probabilities({1, s.e, s.k}, row, chosen, options));
                     };
                     return std::vector{
                         finite_difference_by_rows(0, logits.values, s.e, loss, 3e-6)};
                   }});
}

std::vector<Case> cases() {
  using enum TopK::Softmax;
  using enum TopK::Renormalise;
  std::vector<Case> all;
  for (const Sizes& s : {Sizes{0, 4, 2}, {1, 2, 1}, {9, 7, 3}, {5, 4, 4}, {2000, 20, 4}}) {
    const Values bias = rounded(draw(3, {s.e}, 0.3), DType::F32);
    add_top_k(all, s, {.softmax = AfterSelection}, {}, "after");
    add_top_k(all, s, {.softmax = BeforeSelection}, {}, "before");
    add_top_k(all, s, {.softmax = BeforeSelection, .renormalise = Yes}, {}, "renormalised");
    add_top_k(all, s, {.softmax = BeforeSelection, .factor = 2.5f}, {}, "scaled");
    for (const Score score : {Score::Sigmoid, Score::SqrtSoftplus}) {
      const bool sigmoid = score == Score::Sigmoid;
      add_top_k(all, s, {.score = score}, {}, sigmoid ? "sigmoid" : "sqrtsoftplus");
      add_top_k(all,
                s,
                {.score = score, .renormalise = Yes, .factor = 2.5f},
                bias,
                sigmoid ? "biased_sigmoid" : "biased_sqrtsoftplus");
    }
  }
  for (const Sizes& s : {Sizes{1, 8, 2}, {9, 12, 3}, {2000, 32, 6}}) {
    const Values bias = rounded(draw(3, {s.e}, 0.3), DType::F32);
    const GroupLimit summed{.groups = 4, .kept = 2, .counted = 2};
    const GroupLimit greedy{.groups = 4, .kept = 3, .counted = 1};
    add_top_k(all, s, {.softmax = BeforeSelection, .groups = greedy}, {}, "greedy_groups");
    add_top_k(all, s, {.softmax = AfterSelection, .groups = summed}, {}, "groups_after");
    add_top_k(all,
              s,
              {.score = Score::Sigmoid, .renormalise = Yes, .groups = summed, .factor = 2.5f},
              bias,
              "biased_groups");
    add_given_choice(all, s, {.softmax = AfterSelection}, "after");
    add_given_choice(all, s, {.softmax = BeforeSelection, .factor = 2.5f}, "before");
    add_given_choice(all,
                     s,
                     {.score = Score::Sigmoid, .renormalise = Yes, .groups = summed},
                     "sigmoid_groups");
  }
  add_given_choice(all, {0, 4, 2}, {}, "none");
  return all;
}

INSTANTIATE_TEST_SUITE_P(Router, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

TEST(Router, EqualLogitsPreferTheLowerExpert) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor logits = Tensor::host_visible(pool, DType::F32, {1, 5}, tensor::Tag::Activations);
  const Tensor p = Tensor::host_visible(pool, DType::F32, {1, 3}, tensor::Tag::Activations);
  const Tensor experts = Tensor::host_visible(pool, DType::I32, {1, 3}, tensor::Tag::Activations);
  const float values[] = {1, 0, 1, 2, 1};
  std::copy_n(values, 5, logits.host<float>());
  top_k_forward(*stream, p, experts, logits, {}, {});
  const std::int32_t* got = experts.host<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(got, got + 3), (std::vector<std::int32_t>{0, 2, 3}));
}

TEST(Router, ScoresOfFarLogitsAndTheirGradientsAreFinite) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor logits = Tensor::host_visible(pool, DType::F32, {1, 4}, tensor::Tag::Activations);
  const Tensor p = Tensor::host_visible(pool, DType::F32, {1, 4}, tensor::Tag::Activations);
  const Tensor dp = Tensor::host_visible(pool, DType::F32, {1, 4}, tensor::Tag::Activations);
  const Tensor dlogits = Tensor::host_visible(pool, DType::F32, {1, 4}, tensor::Tag::Activations);
  const Tensor experts = Tensor::host_visible(pool, DType::I32, {1, 4}, tensor::Tag::Activations);
  std::fill_n(dp.host<float>(), 4, 1.0f);
  for (const std::array<float, 4>& values :
       {std::array{-200.0f, -200.0f, -200.0f, -200.0f}, std::array{-1e4f, 0.0f, 90.0f, 1e4f}}) {
    std::ranges::copy(values, logits.host<float>());
    for (const Score score : {Score::Sigmoid, Score::SqrtSoftplus}) {
      const TopK options{.score = score, .renormalise = TopK::Renormalise::Yes};
      top_k_forward(*stream, p, experts, logits, {}, options);
      top_k_dgrad(*stream, dlogits, dp, p, experts, logits, options);
      for (int e = 0; e < 4; ++e) {
        EXPECT_TRUE(std::isfinite(p.host<float>()[e]));
        EXPECT_TRUE(std::isfinite(dlogits.host<float>()[e]));
      }
    }
  }
}

class RouterOn : public testing::TestWithParam<DeviceKind> {};

TEST_P(RouterOn, AChoiceThatIsNoExpertIsAnError) {
  const auto error_of = [&](const std::string& operation, double expert) {
    Scratch s(GetParam());
    const Tensor experts = s.tensor(DType::I32, {2, 2}, {0, 3, 1, expert});
    const Tensor logits = s.tensor(DType::F32, {2, 4}), dlogits = s.tensor(DType::F32, {2, 4});
    const Tensor p = s.tensor(DType::F32, {2, 2}), dp = s.tensor(DType::F32, {2, 2});
    return s.error_of([&](Stream& stream) {
      if (operation == "top_k_dgrad") {
        top_k_dgrad(stream, dlogits, dp, p, experts, logits, {});
      } else {
        probabilities_of_choice(stream, p, experts, logits, {});
      }
    });
  };
  for (const char* operation : {"probabilities_of_choice", "top_k_dgrad"}) {
    EXPECT_EQ(error_of(operation, 2), "none");
    EXPECT_EQ(error_of(operation, 4), own_fault(operation, "expert 4 of 4"));
    EXPECT_EQ(error_of(operation, -1), own_fault(operation, "expert -1 of 4"));
  }
}

// So that model.moe_router_fusion changes no bit.
TEST_P(RouterOn, ProbabilitiesOfTheChoiceHaveTheBitsOfTheChoosing) {
  const Sizes s{300, 24, 4};
  const Values logits_TE = draw(1, {s.t, s.e}, 2),
               bias_E = rounded(draw(3, {s.e}, 0.3), DType::F32);
  for (const Score score : {Score::Softmax, Score::Sigmoid, Score::SqrtSoftplus}) {
    for (const auto softmax : {TopK::Softmax::AfterSelection, TopK::Softmax::BeforeSelection}) {
      for (const auto renormalise : {TopK::Renormalise::No, TopK::Renormalise::Yes}) {
        const TopK options{.score = score, .softmax = softmax, .renormalise = renormalise};
        Scratch scratch(GetParam());
        const Tensor logits = scratch.tensor(DType::F32, {s.t, s.e}, logits_TE);
        const Tensor bias =
            score == Score::Softmax ? Tensor() : scratch.tensor(DType::F32, {s.e}, bias_E);
        const Tensor p = scratch.tensor(DType::F32, {s.t, s.k});
        const Tensor again = scratch.tensor(DType::F32, {s.t, s.k});
        const Tensor experts = scratch.tensor(DType::I32, {s.t, s.k});
        top_k_forward(scratch.stream(), p, experts, logits, bias, options);
        probabilities_of_choice(scratch.stream(), again, experts, logits, options);
        EXPECT_EQ(scratch.read(p), scratch.read(again));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Router, RouterOn, testing::ValuesIn(devices::all_devices()), device_name);

}  // namespace router_test
}  // namespace weft::kernels
