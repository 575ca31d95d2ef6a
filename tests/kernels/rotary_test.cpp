#include "tests/kernels/conformance_support.h"

namespace weft::kernels {
namespace {

constexpr double kBase = 10000;

struct Sizes {
  std::int64_t t, columns, sequence, d;
};

Values table(const Sizes& s) {
  Values angles(std::size_t(s.sequence * s.d));
  for (std::int64_t p = 0; p < s.sequence; ++p) {
    for (std::int64_t i = 0; i < s.d / 2; ++i) {
      const double angle = double(p) * std::pow(kBase, -2.0 * double(i) / double(s.d));
      angles[std::size_t(p * s.d + i)] = std::cos(angle);
      angles[std::size_t(p * s.d + s.d / 2 + i)] = std::sin(angle);
    }
  }
  return angles;
}

Values reference(const Sizes& s, const Values& x) {
  const Values angles = table(s);
  Values y(x.size());
  for (std::int64_t t = 0; t < s.t; ++t) {
    for (std::int64_t c = 0; c < s.columns; ++c) {
      const std::int64_t i = c % s.d, half = s.d / 2, pair = i < half ? c + half : c - half;
      const double cosine = angles[std::size_t(t % s.sequence * s.d + i % half)];
      const double sine = angles[std::size_t(t % s.sequence * s.d + half + i % half)];
      const double other = x[std::size_t(t * s.columns + pair)];
      y[std::size_t(t * s.columns + c)] =
          x[std::size_t(t * s.columns + c)] * cosine + (i < half ? -other : other) * sine;
    }
  }
  return y;
}

void add_cases(std::vector<Case>& cases, const Sizes& s, DType dtype) {
  const Shape xs{s.t, s.columns}, as{s.sequence, s.d};
  const Argument x = strided(input("x", dtype, xs, draw(1, xs)));
  const Argument dy = strided(input("dy", dtype, xs, draw(2, xs)));
  const Argument angles = input("table", DType::F32, as, table(s));
  cases.push_back({name_of_case("forward", dtype, xs),
                   {strided(output("y", dtype, xs)), x, angles},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     rotary_forward(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, reference(s, x.values), tolerance_of(dtype))};
                   }});
  cases.push_back({name_of_case("dgrad", dtype, xs),
                   {strided(output("dx", dtype, xs)), dy, angles},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     rotary_dgrad(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) {
                       return dot(dy.values, reference(s, at));
                     };
                     return std::vector{finite_difference(0, x.values, loss, tolerance_of(dtype))};
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const Sizes& s : {Sizes{1, 2, 1, 2}, {0, 8, 4, 4}, {10, 12, 5, 4}, {600, 64, 300, 64}}) {
      add_cases(all, s, dtype);
    }
  }
  const Sizes s{0, 0, 300, 10};
  all.push_back(
      {"table",
       {output("table", DType::F32, {s.sequence, s.d})},
       [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         rotary_table(stream, a[0], kBase);
       },
       [=](const std::vector<Argument>&) { return std::vector{whole(0, table(s), 1e-7)}; }});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rotary, Conformance, testing::ValuesIn(cases()), case_name);

TEST(Rotary, MayTurnInPlace) {
  Pool pool;
  const auto stream = tensor::make_cpu_stream("s", 2, tensor::StreamMode::Inline);
  const Tensor x(pool, DType::F32, {2, 2}, tensor::Tag::Activations);
  const Tensor angles(pool, DType::F32, {2, 2}, tensor::Tag::Activations);
  rotary_table(*stream, angles, kBase);
  for (int i = 0; i < 4; ++i) x.host<float>()[i] = i % 2 == 0 ? 1.0f : 0.0f;
  rotary_forward(*stream, x, x, angles);
  EXPECT_NEAR(x.host<float>()[2], std::cos(1.0), 1e-6);
  EXPECT_NEAR(x.host<float>()[3], std::sin(1.0), 1e-6);
  rotary_dgrad(*stream, x, x, angles);
  EXPECT_NEAR(x.host<float>()[2], 1, 1e-6);
  EXPECT_NEAR(x.host<float>()[3], 0, 1e-6);
}

}  // namespace
}  // namespace weft::kernels
