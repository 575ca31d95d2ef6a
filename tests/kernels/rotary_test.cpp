#include "tests/kernels/conformance_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace rotary_test {

constexpr double kBase = 10000;

struct Sizes {
  std::int64_t t, columns, sequence, d;
  Rotary rotary = {};
};

// Partner of channel i, and the angle that they share.
struct Pair {
  std::int64_t partner, angle;
  bool first;
};

Pair pair_of(const Sizes& s, std::int64_t i) {
  const std::int64_t half = s.d / 2;
  if (s.rotary.pairs == Rotary::Pairs::Neighbours) return {i ^ 1, i / 2, i % 2 == 0};
  return {(i + half) % s.d, i % half, i < half};
}

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
      const std::int64_t i = c % (s.rotary.unturned + s.d) - s.rotary.unturned;
      const auto at = std::size_t(t * s.columns + c);
      if (i < 0) {
        y[at] = x[at];
        continue;
      }
      const Pair pair = pair_of(s, i);
      const auto angle = std::size_t(t % s.sequence * s.d + pair.angle);
      const double cosine = angles[angle], sine = angles[angle + std::size_t(s.d / 2)];
      const double other = x[std::size_t(t * s.columns + c - i + pair.partner)];
      y[at] = x[at] * cosine + (pair.first ? -other : other) * sine;
    }
  }
  return y;
}

void add_cases(std::vector<Case>& cases, const Sizes& s, DType dtype) {
  const Shape xs{s.t, s.columns}, as{s.sequence, s.d};
  const Argument x = strided(input("x", dtype, xs, draw(1, xs)));
  const Argument dy = strided(input("dy", dtype, xs, draw(2, xs)));
  const Argument angles = input("table", DType::F32, as, table(s));
  const bool neighbours = s.rotary.pairs == Rotary::Pairs::Neighbours;
  const std::string kind =
      base::text("{}_unturned{}_", neighbours ? "neighbours" : "halves", s.rotary.unturned);
  cases.push_back({name_of_case(kind + "forward", dtype, xs),
                   {strided(output("y", dtype, xs)), x, angles},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     rotary_forward(stream, a[0], a[1], a[2], s.rotary);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, reference(s, x.values), tolerance_of(dtype))};
                   }});
  cases.push_back({name_of_case(kind + "dgrad", dtype, xs),
                   {strided(output("dx", dtype, xs)), dy, angles},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     rotary_dgrad(stream, a[0], a[1], a[2], s.rotary);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) {
                       return dot(dy.values, reference(s, at));
                     };
                     return std::vector{finite_difference(0, x.values, loss, tolerance_of(dtype))};
                   }});
}

// DeepSeek-V3's numbers: 64 channels turn, 4096 positions are stretched by 40. Pairs 0 to 10 keep
// their angle, pairs from 23 on are stretched.
Case yarn_table() {
  constexpr std::int64_t kPositions = 90, kWidth = 64, kHalf = kWidth / 2;
  constexpr double kMagnitude = 1.25;
  Values angles(std::size_t(kPositions * kWidth));
  for (std::int64_t i = 0; i < kHalf; ++i) {
    const double plain = std::pow(kBase, -double(i) / double(kHalf));
    const double share = std::clamp((double(i) - 10) / 13, 0.0, 1.0);
    const double step = (1 - share) * plain + share * plain / 40;
    for (std::int64_t p = 0; p < kPositions; ++p) {
      angles[std::size_t(p * kWidth + i)] = kMagnitude * std::cos(double(p) * step);
      angles[std::size_t(p * kWidth + kHalf + i)] = kMagnitude * std::sin(double(p) * step);
    }
  }
  return {"table_yarn",
          {output("table", DType::F32, {kPositions, kWidth})},
          [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
            const Yarn yarn{.factor = 40, .original_positions = 4096, .magnitude = kMagnitude};
            rotary_table(stream, a[0], {.base = kBase, .yarn = yarn});
          },
          [=](const std::vector<Argument>&) { return std::vector{whole(0, angles, 1e-7)}; }};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const Sizes& s :
         {Sizes{1, 2, 1, 2}, {0, 8, 4, 4}, {10, 12, 5, 4}, {600, 64, 300, 64}, {7, 384, 5, 128}}) {
      add_cases(all, s, dtype);
    }
    const Rotary part{.unturned = 3};
    const Rotary neighbours{.pairs = Rotary::Pairs::Neighbours};
    const Rotary latent{.pairs = Rotary::Pairs::Neighbours, .unturned = 16};
    for (const Sizes& s : {Sizes{10, 14, 5, 4, part},
                           Sizes{10, 12, 5, 6, neighbours},
                           Sizes{300, 72, 100, 8, latent},
                           Sizes{7, 96, 5, 32, latent}}) {
      add_cases(all, s, dtype);
    }
  }
  all.push_back(yarn_table());
  const Sizes s{0, 0, 300, 10};
  all.push_back(
      {"table",
       {output("table", DType::F32, {s.sequence, s.d})},
       [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         rotary_table(stream, a[0], {.base = kBase});
       },
       [=](const std::vector<Argument>&) { return std::vector{whole(0, table(s), 1e-7)}; }});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rotary, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

TEST(Rotary, MayTurnInPlace) {
  Workbench bench(2);
  auto& [device, pool, stream] = bench;
  const Tensor x = Tensor::host_visible(pool, DType::F32, {2, 2}, tensor::Tag::Activations);
  const Tensor angles = Tensor::host_visible(pool, DType::F32, {2, 2}, tensor::Tag::Activations);
  rotary_table(*stream, angles, {.base = kBase});
  for (int i = 0; i < 4; ++i) x.host<float>()[i] = i % 2 == 0 ? 1.0f : 0.0f;
  rotary_forward(*stream, x, x, angles);
  EXPECT_NEAR(x.host<float>()[2], std::cos(1.0), 1e-6);
  EXPECT_NEAR(x.host<float>()[3], std::sin(1.0), 1e-6);
  rotary_dgrad(*stream, x, x, angles);
  EXPECT_NEAR(x.host<float>()[2], 1, 1e-6);
  EXPECT_NEAR(x.host<float>()[3], 0, 1e-6);
}

}  // namespace rotary_test
}  // namespace weft::kernels
