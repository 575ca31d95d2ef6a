#include "tests/kernels/conformance_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace elementwise_test {

constexpr float kFactor = 0.3f;

void add_cases(std::vector<Case>& cases, std::int64_t n, DType dtype) {
  const Argument a = input("a", dtype, {n}, draw(1, {n})), b = input("b", dtype, {n}, draw(2, {n}));
  cases.push_back(
      {name_of_case("add", dtype, {n}),
       {output("y", dtype, {n}), a, b},
       [](Stream& stream, Pool&, const std::vector<Tensor>& t) { add(stream, t[0], t[1], t[2]); },
       [=](const std::vector<Argument>&) {
         Values want = a.values;
         for (std::size_t i = 0; i < want.size(); ++i) want[i] += b.values[i];
         return std::vector{whole(0, rounded(want, dtype), 1e-7)};
       }});
  for (const DType to : {DType::F32, DType::BF16}) {
    cases.push_back(
        {name_of_case("copy_to_" + std::string(tensor::name_of(to)), dtype, {n}),
         {output("y", to, {n}), a},
         [](Stream& stream, Pool&, const std::vector<Tensor>& t) { copy(stream, t[0], t[1]); },
         [=](const std::vector<Argument>&) {
           return std::vector{whole(0, rounded(a.values, to), 0)};
         }});
  }
  cases.push_back({name_of_case("zero", dtype, {n}),
                   {output("y", dtype, {n})},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& t) { zero(stream, t[0]); },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, Values(std::size_t(n), 0.0), 0)};
                   }});
}

void add_fp32_cases(std::vector<Case>& cases, std::int64_t n) {
  const Argument a = input("a", DType::F32, {n}, draw(1, {n}));
  cases.push_back(
      {name_of_case("accumulate", DType::F32, {n}),
       {sum_into("y", {n}), a},
       [](Stream& stream, Pool&, const std::vector<Tensor>& t) { accumulate(stream, t[0], t[1]); },
       [=](const std::vector<Argument>&) { return std::vector{whole(0, a.values, 1e-6)}; }});
  const Argument b = input("b", DType::BF16, {n}, rounded(draw(2, {n}), DType::BF16));
  cases.push_back({name_of_case("accumulate_in_bf16", DType::BF16, {n}),
                   {output("y", DType::BF16, {n}), a, b},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& t) {
                     copy(stream, t[0], t[2]);
                     accumulate(stream, t[0], t[1]);
                   },
                   [=](const std::vector<Argument>&) {
                     Values want = a.values;
                     for (std::size_t i = 0; i < want.size(); ++i) want[i] += b.values[i];
                     return std::vector{whole(0, rounded(want, DType::BF16), 1e-7)};
                   }});
  cases.push_back({name_of_case("squared_norm", DType::BF16, {n}),
                   {output("sum", DType::F64, {1}), b},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& t) {
                     squared_norm(stream, t[0], t[1], Write::Assign);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, {dot(b.values, b.values)}, 1e-12)};
                   }});
  cases.push_back({name_of_case("scaled_copy", DType::F32, {n}),
                   {output("y", DType::F32, {n}), a},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& t) {
                     copy(stream, t[0], t[1]);
                     scale(stream, t[0], kFactor);
                   },
                   [=](const std::vector<Argument>&) {
                     Values want = a.values;
                     for (double& x : want) x *= double(kFactor);
                     return std::vector{whole(0, want, 1e-7)};
                   }});
  Argument x = a;
  cases.push_back({name_of_case("squared_norm", DType::F32, {n}),
                   {output("sum", DType::F64, {1}), x},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& t) {
                     squared_norm(stream, t[0], t[1], Write::Assign);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, {dot(a.values, a.values)}, 1e-12)};
                   }});
  cases.push_back(
      {name_of_case("squared_norm_of_two_parts", DType::F32, {n}),
       {output("sum", DType::F64, {1}), x},
       [](Stream& stream, Pool&, const std::vector<Tensor>& t) {
         const std::int64_t half = t[1].elements() / 2;
         squared_norm(stream, t[0], t[1].rows(0, half), Write::Assign);
         squared_norm(stream, t[0], t[1].rows(half, t[1].elements() - half), Write::Accumulate);
       },
       [=](const std::vector<Argument>&) {
         return std::vector{whole(0, {dot(a.values, a.values)}, 1e-12)};
       }});
  Argument some = a;
  double zeros = 0;
  for (std::size_t i = 0; i < some.values.size(); i += 3) {
    some.values[i] = i % 2 == 0 ? 0.0 : -0.0;
    ++zeros;
  }
  cases.push_back(
      {name_of_case("count_zeros_of_two_parts", DType::F32, {n}),
       {output("count", DType::F64, {1}), some},
       [](Stream& stream, Pool&, const std::vector<Tensor>& t) {
         const std::int64_t half = t[1].elements() / 2;
         count_zeros(stream, t[0], t[1].rows(0, half), Write::Assign);
         count_zeros(stream, t[0], t[1].rows(half, t[1].elements() - half), Write::Accumulate);
       },
       [=](const std::vector<Argument>&) { return std::vector{whole(0, {zeros}, 0)}; }});
  for (double& value : x.values) value = std::abs(value);
  cases.push_back(
      {name_of_case("sum", DType::F32, {n}),
       {output("sum", DType::F64, {1}), x},
       [](Stream& stream, Pool&, const std::vector<Tensor>& t) { sum(stream, t[0], t[1]); },
       [=](const std::vector<Argument>&) {
         return std::vector{whole(0, {dot(x.values, Values(std::size_t(n), 1.0))}, 1e-12)};
       }});
}

void add_strided_copy(std::vector<Case>& cases, DType to, DType from) {
  const Shape shape{5, 7};
  const Argument x = strided(input("x", from, shape, rounded(draw(1, shape), DType::BF16)));
  cases.push_back(
      {base::text("copy_rows_{}_of_{}", tensor::name_of(to), tensor::name_of(from)),
       {strided(output("y", to, shape)), x},
       [](Stream& stream, Pool&, const std::vector<Tensor>& t) { copy(stream, t[0], t[1]); },
       [=](const std::vector<Argument>&) { return std::vector{whole(0, x.values, 0)}; }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType to : {DType::F32, DType::BF16}) {
    for (const DType from : {DType::F32, DType::BF16}) add_strided_copy(all, to, from);
  }
  for (const std::int64_t n : {0, 1, 7, 70001}) {
    add_cases(all, n, DType::F32);
    add_cases(all, n, DType::BF16);
    add_fp32_cases(all, n);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Elementwise,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

}  // namespace elementwise_test
}  // namespace weft::kernels
