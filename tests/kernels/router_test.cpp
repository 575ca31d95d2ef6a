#include <numeric>

#include "tests/kernels/conformance_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace {

struct Sizes {
  std::int64_t t, e, k;
};

Values softmax(const Values& logits, std::size_t begin, std::size_t n) {
  Values s;
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::exp(logits[begin + i]);
  for (std::size_t i = 0; i < n; ++i) s.push_back(std::exp(logits[begin + i]) / sum);
  return s;
}

struct Choice {
  Values p, experts;
};

// Softmax over all, the k best, and what the options say of their sum.
Choice reference(const Sizes& s, const Values& logits, const TopK& options) {
  Choice choice;
  for (std::size_t t = 0; t < std::size_t(s.t); ++t) {
    const std::size_t begin = t * std::size_t(s.e);
    const Values scores = softmax(logits, begin, std::size_t(s.e));
    std::vector<std::size_t> order(std::size_t(s.e));
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return logits[begin + a] > logits[begin + b];
    });
    order.resize(std::size_t(s.k));
    std::sort(order.begin(), order.end());
    double sum = 0;
    for (const std::size_t e : order) sum += scores[e];
    const bool one = options.softmax == TopK::Softmax::AfterSelection ||
                     options.renormalise == TopK::Renormalise::Yes;
    for (const std::size_t e : order) {
      choice.experts.push_back(double(e));
      choice.p.push_back(one ? scores[e] / sum : scores[e]);
    }
  }
  return choice;
}

void add_top_k(std::vector<Case>& cases, const Sizes& s, const TopK& options, const char* variant) {
  const Shape ls{s.t, s.e}, ps{s.t, s.k};
  const auto name = [&](const char* op) {
    return base::text("{}_{}_{}x{}x{}", op, variant, s.t, s.e, s.k);
  };
  const Argument logits = strided(input("logits", DType::F32, ls, draw(1, ls, 2)));
  const Choice choice = reference(s, logits.values, options);
  const Argument dp = strided(input("dp", DType::F32, ps, draw(2, ps)));
  const Argument p = strided(input("p", DType::F32, ps, choice.p));
  const Argument experts = strided(input("experts", DType::I32, ps, choice.experts));
  cases.push_back(
      {name("top_k_forward"),
       {strided(output("p", DType::F32, ps)), strided(output("experts", DType::I32, ps)), logits},
       [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         top_k_forward(stream, a[0], a[1], a[2], options);
       },
       [=](const std::vector<Argument>&) {
         return std::vector{whole(0, choice.p, 1e-6), whole(1, choice.experts, 0)};
       }});
  cases.push_back({name("top_k_dgrad"),
                   {strided(output("dlogits", DType::F32, ls)), dp, p, experts, logits},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     top_k_dgrad(stream, a[0], a[1], a[2], a[3], a[4], options);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) {
                       return dot(dp.values, reference(s, at, options).p);
                     };
                     return std::vector{finite_difference(0, logits.values, loss, 3e-6)};
                   }});
}

double balance(const Sizes& s, const Values& logits, const Values& counts) {
  double sum = 0;
  for (std::size_t t = 0; t < std::size_t(s.t); ++t) {
    sum += dot(softmax(logits, t * std::size_t(s.e), std::size_t(s.e)), counts);
  }
  return s.t == 0 ? 0 : sum * double(s.e) / (double(s.k) * double(s.t) * double(s.t));
}

double z_loss(const Sizes& s, const Values& logits) {
  double total = 0;
  for (std::size_t t = 0; t < std::size_t(s.t); ++t) {
    double sum = 0;
    for (std::size_t e = 0; e < std::size_t(s.e); ++e)
      sum += std::exp(logits[t * std::size_t(s.e) + e]);
    total += std::log(sum) * std::log(sum);
  }
  return s.t == 0 ? 0 : total / double(s.t);
}

void add_losses(std::vector<Case>& cases, const Sizes& s) {
  constexpr double kScale = 0.5;
  const Shape ls{s.t, s.e};
  const Argument logits = strided(input("logits", DType::F32, ls, draw(1, ls, 2)));
  Values rows;
  for (std::int64_t e = 0; e < s.e; ++e) rows.push_back(double(e % 3 * s.t));
  const Argument counts = input("counts", DType::I64, {s.e}, rows);
  const auto name = [&](const char* op) { return name_of_case(op, DType::F32, ls); };
  cases.push_back({name("balance_loss_forward"),
                   {output("loss", DType::F32, {1}), logits, counts},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     balance_loss_forward(stream, a[0], a[1], a[2], s.k);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, {balance(s, logits.values, rows)}, 1e-6)};
                   }});
  cases.push_back({name("balance_loss_dgrad"),
                   {strided(output("dlogits", DType::F32, ls)), logits, counts},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     balance_loss_dgrad(stream, a[0], a[1], a[2], s.k, float(kScale));
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) {
                       return kScale * balance(s, at, rows);
                     };
                     return std::vector{finite_difference(0, logits.values, loss, 3e-6)};
                   }});
  cases.push_back({name("z_loss_forward"),
                   {output("loss", DType::F32, {1}), logits},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     z_loss_forward(stream, a[0], a[1]);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, {z_loss(s, logits.values)}, 1e-6)};
                   }});
  cases.push_back({name("z_loss_dgrad"),
                   {strided(output("dlogits", DType::F32, ls)), logits},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     z_loss_dgrad(stream, a[0], a[1], float(kScale));
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) { return kScale * z_loss(s, at); };
                     return std::vector{finite_difference(0, logits.values, loss, 3e-6)};
                   }});
}

std::vector<Case> cases() {
  using enum TopK::Softmax;
  using enum TopK::Renormalise;
  std::vector<Case> all;
  for (const Sizes& s : {Sizes{0, 4, 2}, {1, 2, 1}, {9, 7, 3}, {5, 4, 4}, {2000, 20, 4}}) {
    add_top_k(all, s, {AfterSelection, No}, "after");
    add_top_k(all, s, {BeforeSelection, No}, "before");
    add_top_k(all, s, {BeforeSelection, Yes}, "renormalised");
  }
  for (const Sizes& s : {Sizes{0, 4, 2}, {1, 2, 1}, {9, 7, 3}, {2000, 20, 4}}) add_losses(all, s);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Router, Conformance, testing::ValuesIn(cases()), case_name);

TEST(Router, EqualLogitsPreferTheLowerExpert) {
  Pool pool;
  const auto stream = tensor::make_cpu_stream("s", 1, tensor::StreamMode::Inline);
  const Tensor logits(pool, DType::F32, {1, 5}, tensor::Tag::Activations);
  const Tensor p(pool, DType::F32, {1, 3}, tensor::Tag::Activations);
  const Tensor experts(pool, DType::I32, {1, 3}, tensor::Tag::Activations);
  const float values[] = {1, 0, 1, 2, 1};
  std::copy_n(values, 5, logits.host<float>());
  top_k_forward(*stream, p, experts, logits, {});
  const std::int32_t* got = experts.host<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(got, got + 3), (std::vector<std::int32_t>{0, 2, 3}));
}

}  // namespace
}  // namespace weft::kernels
