#include "tests/kernels/conformance_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace router_losses_test {

struct Sizes {
  std::int64_t t, e;
  std::int64_t runs = 1;
  std::int64_t first = 0;  // first token, if the tokens are a part of the runs

  TokenRuns token_runs() const {
    if (runs == 1) return {};
    return {.first = first, .length = (first + t + runs - 1) / runs};
  }
};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

double raw_score(double logit, Score score) {
  switch (score) {
    case Score::Softmax:
      return std::exp(logit);
    case Score::Sigmoid:
      return 1 / (1 + std::exp(-logit));
    case Score::SqrtSoftplus:
      return std::sqrt(std::log1p(std::exp(logit)));
  }
  return 0;
}

// E / T * sum of scores scaled to sum 1, times the expert's share of its run's rows.
double balance(const Sizes& s, const Values& logits, const Values& counts, Score score) {
  double total = 0;
  for (std::size_t t = 0; t < at(s.t); ++t) {
    const TokenRuns runs = s.token_runs();
    const std::int64_t run = (runs.first + std::int64_t(t)) / runs.length;
    const double* rows = counts.data() + at(run * s.e);
    double scores = 0, shares = 0, sum = 0;
    for (std::size_t e = 0; e < at(s.e); ++e) {
      const double own = raw_score(logits[t * at(s.e) + e], score);
      scores += own;
      shares += rows[e];
      sum += own * rows[e];
    }
    total += sum / scores / shares;
  }
  return s.t == 0 ? 0 : total * double(s.e) / double(s.t);
}

double z_loss(const Sizes& s, const Values& logits) {
  double total = 0;
  for (std::size_t t = 0; t < at(s.t); ++t) {
    double sum = 0;
    for (std::size_t e = 0; e < at(s.e); ++e) sum += std::exp(logits[t * at(s.e) + e]);
    total += std::log(sum) * std::log(sum);
  }
  return s.t == 0 ? 0 : total / double(s.t);
}

constexpr double kScale = 0.5;

void add_balance(std::vector<Case>& cases, const Sizes& s, Score score, const char* variant) {
  const Shape ls{s.t, s.e}, cs{s.runs, s.e};
  const Argument logits = strided(input("logits", DType::F32, ls, draw(1, ls, 2)));
  Values rows;
  for (std::int64_t i = 0; i < s.runs * s.e; ++i) rows.push_back(double((i + 1) % 3 * (s.t + 1)));
  const Argument counts = input("counts", DType::I64, cs, rows);
  const auto name = [&](const char* op) {
    return base::text("{}_{}_{}x{}x{}_{}", op, variant, s.t, s.e, s.runs, s.first);
  };
  cases.push_back({name("balance_loss_forward"),
                   {output("loss", DType::F32, {1}), logits, counts},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     balance_loss_forward(stream, a[0], a[1], a[2], s.token_runs(), score);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, {balance(s, logits.values, rows, score)}, 1e-6)};
                   }});
  cases.push_back(
      {name("balance_loss_dgrad"),
       {strided(output("dlogits", DType::F32, ls)), logits, counts},
       [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         balance_loss_dgrad(stream, a[0], a[1], a[2], s.token_runs(), score, float(kScale));
       },
       [=](const std::vector<Argument>&) {
         const auto loss = [&](const Values& logits_at) {
           return kScale * balance(s, logits_at, rows, score);
         };
         return std::vector{finite_difference(0, logits.values, loss, 3e-6)};
       }});
}

void add_z(std::vector<Case>& cases, const Sizes& s) {
  const Shape ls{s.t, s.e};
  const Argument logits = strided(input("logits", DType::F32, ls, draw(1, ls, 2)));
  const auto name = [&](const char* op) { return name_of_case(op, DType::F32, ls); };
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
                     const auto loss = [&](const Values& logits_at) {
                       return kScale * z_loss(s, logits_at);
                     };
                     return std::vector{finite_difference(0, logits.values, loss, 3e-6)};
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Sizes& s :
       {Sizes{0, 4}, {1, 2}, {9, 7}, {9, 7, 3}, {5, 7, 3, 4}, {2000, 20}, {2000, 20, 4, 700}}) {
    add_balance(all, s, Score::Softmax, "softmax");
    add_balance(all, s, Score::Sigmoid, "sigmoid");
    add_balance(all, s, Score::SqrtSoftplus, "sqrtsoftplus");
  }
  for (const Sizes& s : {Sizes{0, 4}, {1, 2}, {9, 7}, {2000, 20}}) add_z(all, s);
  return all;
}

INSTANTIATE_TEST_SUITE_P(RouterLosses,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

TEST(RouterLosses, EvenLoadsCostOne) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor logits = Tensor::host_visible(pool, DType::F32, {64, 8}, tensor::Tag::Activations);
  const Tensor counts = Tensor::host_visible(pool, DType::I64, {1, 8}, tensor::Tag::Activations);
  const Tensor loss = Tensor::host_visible(pool, DType::F32, {1}, tensor::Tag::Activations);
  std::ranges::copy(draw(1, {64, 8}, 3), logits.host<float>());
  std::fill_n(counts.host<std::int64_t>(), 8, 16);
  for (const Score score : {Score::Softmax, Score::Sigmoid, Score::SqrtSoftplus}) {
    balance_loss_forward(*stream, loss, logits, counts, {}, score);
    EXPECT_NEAR(*loss.host<float>(), 1.0f, 1e-6f);
  }
}

}  // namespace router_losses_test
}  // namespace weft::kernels
