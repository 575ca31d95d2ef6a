#include "tests/kernels/conformance_support.h"

namespace weft::kernels {
namespace cross_entropy_test {

constexpr double kScale = 0.25;

struct Result {
  Values loss, lse;
};

Result reference(std::int64_t v, const Values& logits, const Values& labels) {
  Result result;
  for (std::size_t t = 0; t < labels.size(); ++t) {
    double sum = 0;
    for (std::size_t i = 0; i < std::size_t(v); ++i)
      sum += std::exp(logits[t * std::size_t(v) + i]);
    result.lse.push_back(std::log(sum));
    const double label = labels[t];
    result.loss.push_back(
        label < 0 ? 0 : result.lse.back() - logits[t * std::size_t(v) + std::size_t(label)]);
  }
  return result;
}

void add_cases(std::vector<Case>& cases, std::int64_t t, std::int64_t v) {
  const Shape ls{t, v};
  Values chosen;
  for (std::int64_t i = 0; i < t; ++i) chosen.push_back(i % 3 == 1 ? -100.0 : double(i * 5 % v));
  const Argument logits = strided(input("logits", DType::F32, ls, draw(1, ls, 4)));
  const Argument labels = input("labels", DType::I32, {t}, chosen);
  const Argument lse = input("lse", DType::F32, {t}, reference(v, logits.values, chosen).lse);
  cases.push_back(
      {name_of_case("forward", DType::F32, ls),
       {output("loss", DType::F32, {t}), output("lse", DType::F32, {t}), logits, labels},
       [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         cross_entropy_forward(stream, a[0], a[1], a[2], a[3]);
       },
       [=](const std::vector<Argument>&) {
         const Result want = reference(v, logits.values, chosen);
         return std::vector{whole(0, want.loss, 1e-6), whole(1, want.lse, 1e-6)};
       }});
  for (const DType dtype : {DType::F32, DType::BF16}) {
    cases.push_back({name_of_case("dgrad", dtype, ls),
                     {strided(output("dlogits", dtype, ls)), logits, lse, labels},
                     [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                       cross_entropy_dgrad(stream, a[0], a[1], a[2], a[3], float(kScale));
                     },
                     [=](const std::vector<Argument>&) {
                       const auto loss = [&](const Values& at) {
                         double sum = 0;
                         for (const double l : reference(v, at, chosen).loss) sum += kScale * l;
                         return sum;
                       };
                       return std::vector{
                           finite_difference(0, logits.values, loss, tolerance_of(dtype), 60)};
                     }});
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  add_cases(all, 1, 1);
  add_cases(all, 0, 5);
  add_cases(all, 4, 13);
  add_cases(all, 40, 2500);
  add_cases(all, 3, 20003);
  return all;
}

INSTANTIATE_TEST_SUITE_P(CrossEntropy,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

TEST(CrossEntropy, TheGradientMayReplaceTheLogits) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor logits = Tensor::host_visible(pool, DType::F32, {1, 2}, tensor::Tag::Activations);
  const Tensor lse = Tensor::host_visible(pool, DType::F32, {1}, tensor::Tag::Activations);
  const Tensor loss = Tensor::host_visible(pool, DType::F32, {1}, tensor::Tag::Activations);
  const Tensor labels = Tensor::host_visible(pool, DType::I32, {1}, tensor::Tag::Activations);
  logits.host<float>()[0] = logits.host<float>()[1] = 500;
  labels.host<std::int32_t>()[0] = 1;
  cross_entropy_forward(*stream, loss, lse, logits, labels);
  EXPECT_NEAR(loss.host<float>()[0], std::log(2.0), 1e-4);
  cross_entropy_dgrad(*stream, logits, logits, lse, labels, 1);
  EXPECT_NEAR(logits.host<float>()[0], 0.5, 1e-4);
  EXPECT_NEAR(logits.host<float>()[1], -0.5, 1e-4);
}

}  // namespace cross_entropy_test
}  // namespace weft::kernels
