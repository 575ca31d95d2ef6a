// Fused norm of heads and rotation.
#include "tests/kernels/conformance_support.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace norm_rotary_test {

constexpr double kEpsilon = 1e-5, kBase = 10000;

using Pairs = Rotary::Pairs;

struct Sizes {
  std::int64_t t, columns, sequence, n;
  Pairs pairs = Pairs::Halves;
};

Values reciprocals(const Sizes& s, const Values& x) {
  Values rstd;
  for (std::size_t at = 0; at < x.size(); at += std::size_t(s.n)) {
    double sum = 0;
    for (std::size_t i = 0; i < std::size_t(s.n); ++i) sum += x[at + i] * x[at + i];
    rstd.push_back(1 / std::sqrt(sum / double(s.n) + kEpsilon));
  }
  return rstd;
}

double angle_of(const Sizes& s, std::int64_t position, std::int64_t pair) {
  return double(position) * std::pow(kBase, -2.0 * double(pair) / double(s.n));
}

Values table(const Sizes& s) {
  Values angles(std::size_t(s.sequence * s.n));
  for (std::int64_t p = 0; p < s.sequence; ++p) {
    for (std::int64_t i = 0; i < s.n / 2; ++i) {
      angles[std::size_t(p * s.n + i)] = std::cos(angle_of(s, p, i));
      angles[std::size_t(p * s.n + s.n / 2 + i)] = std::sin(angle_of(s, p, i));
    }
  }
  return angles;
}

Values reference(const Sizes& s, const Values& x, const Values& w, const Values& angles) {
  const Values rstd = reciprocals(s, x);
  const bool halves = s.pairs == Pairs::Halves;
  Values y(x.size());
  for (std::size_t head = 0; head < rstd.size(); ++head) {
    const std::int64_t t = std::int64_t(head) / (s.columns / s.n);
    const auto normed = [&](std::size_t i) {
      return x[head * std::size_t(s.n) + i] * rstd[head] * w[i];
    };
    for (std::int64_t pair = 0; pair < s.n / 2; ++pair) {
      const auto a = std::size_t(halves ? pair : 2 * pair);
      const auto b = std::size_t(halves ? pair + s.n / 2 : 2 * pair + 1);
      const double* turn = &angles[std::size_t(t % s.sequence * s.n + pair)];
      const double cosine = turn[0], sine = turn[s.n / 2];
      const std::size_t at = head * std::size_t(s.n);
      y[at + a] = normed(a) * cosine - normed(b) * sine;
      y[at + b] = normed(b) * cosine + normed(a) * sine;
    }
  }
  return y;
}

void add_cases(std::vector<Case>& cases, const Sizes& s, DType dtype) {
  const Shape xs{s.t, s.columns}, ws{s.n}, rs{s.t, s.columns / s.n}, as{s.sequence, s.n};
  const auto name = [&](const std::string& op) {
    return name_of_case(base::text("{}_{}", s.pairs == Pairs::Halves ? "halves" : "neighbours", op),
                        dtype,
                        {s.t, s.columns, s.n});
  };
  const Argument x = strided(input("x", dtype, xs, draw(1, xs, 2)));
  const Argument w = input("w", dtype, ws, draw(2, ws));
  const Argument dy = strided(input("dy", dtype, xs, draw(3, xs)));
  const Argument rstd = input("rstd", DType::F32, rs, reciprocals(s, x.values));
  const Values turns = table(s);
  const Argument angles = input("table", DType::F32, as, turns);
  cases.push_back({name("forward"),
                   {strided(output("y", dtype, xs)), output("rstd", DType::F32, rs), x, w, angles},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     const auto epsilon = static_cast<float>(kEpsilon);
                     norm_rotary_forward(stream, a[0], a[1], a[2], a[3], a[4], epsilon, s.pairs);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{
                         whole(0, reference(s, x.values, w.values, turns), tolerance_of(dtype)),
                         whole(1, reciprocals(s, x.values), 2e-6)};
                   }});
  cases.push_back({name("dgrad"),
                   {strided(output("dx", dtype, xs)), dy, x, w, rstd, angles},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     norm_rotary_dgrad(stream, a[0], a[1], a[2], a[3], a[4], a[5], s.pairs);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) {
                       return dot(dy.values, reference(s, at, w.values, turns));
                     };
                     return std::vector{finite_difference(0, x.values, loss, tolerance_of(dtype))};
                   }});
  for (const Write write : {Write::Accumulate, Write::Assign}) {
    cases.push_back({name(name_of_wgrad(write)),
                     {weight_gradient("dw", ws, write), dy, x, rstd, angles},
                     [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                       norm_rotary_wgrad(stream, a[0], a[1], a[2], a[3], a[4], s.pairs, write);
                     },
                     [=](const std::vector<Argument>&) {
                       const auto loss = [&](const Values& at) {
                         return dot(dy.values, reference(s, x.values, at, turns));
                       };
                       return std::vector{finite_difference(0, w.values, loss, 3e-6)};
                     }});
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const Pairs pairs : {Pairs::Halves, Pairs::Neighbours}) {
      for (const Sizes& s : {Sizes{1, 2, 1, 2, pairs},
                             {0, 6, 4, 6, pairs},
                             {5, 30, 3, 10, pairs},
                             {300, 32, 100, 16, pairs},
                             {67, 384, 20, 128, pairs},
                             {3, 1040, 2, 520, pairs}}) {
        add_cases(all, s, dtype);
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(NormRotary,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

}  // namespace norm_rotary_test
}  // namespace weft::kernels
