// Norm over the columns of two ranks: the case has the first rank's columns, and knows the other's
// sums.
#include <cmath>

#include "tests/kernels/conformance_support.h"

namespace weft::kernels {
namespace shared_norm_test {

constexpr double kEpsilon = 1e-5;

struct Sizes {
  std::int64_t t, columns, others;

  SharedNorm norm() const { return {.width = columns + others, .epsilon = float(kEpsilon)}; }
};

Values row_dots_of(const Sizes& s, const Values& a, const Values& b, const Values& w) {
  Values dots(std::size_t(s.t));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double factor = w.empty() ? 1 : w[i % std::size_t(s.columns)];
    dots[i / std::size_t(s.columns)] += a[i] * b[i] * factor;
  }
  return dots;
}

Values sum_of(Values a, const Values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

Values reciprocals(const Sizes& s, const Values& squares) {
  Values rstd;
  for (const double sum : squares) {
    rstd.push_back(1 / std::sqrt(sum / double(s.norm().width) + kEpsilon));
  }
  return rstd;
}

Values normed(const Sizes& s, const Values& x, const Values& w, const Values& rstd) {
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] * rstd[i / std::size_t(s.columns)] * w[i % std::size_t(s.columns)];
  }
  return y;
}

void add_dots(std::vector<Case>& cases, const Sizes& s, DType dtype) {
  const Shape xs{s.t, s.columns}, ws{s.columns};
  const Argument a = strided(input("a", dtype, xs, draw(1, xs, 2)));
  const Argument b = strided(input("b", dtype, xs, draw(2, xs)));
  const Argument w = input("w", dtype, ws, draw(3, ws));
  const auto name = [&](const char* op) { return name_of_case(op, dtype, {s.t, s.columns}); };
  cases.push_back({name("dots"),
                   {output("dots", DType::F32, {s.t}), a, b, w},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& t) {
                     row_dots(stream, t[0], t[1], t[2], t[3]);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{
                         whole(0, row_dots_of(s, a.values, b.values, w.values), 3e-6)};
                   }});
  cases.push_back({name("squares"),
                   {output("dots", DType::F32, {s.t}), a},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& t) {
                     row_dots(stream, t[0], t[1], t[1], {});
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, row_dots_of(s, a.values, a.values, {}), 3e-6)};
                   }});
}

void add_norm(std::vector<Case>& cases, const Sizes& s, DType dtype) {
  const Shape xs{s.t, s.columns}, ws{s.columns}, rs{s.t, 1};
  const Argument x = strided(input("x", dtype, xs, draw(1, xs, 2)));
  const Argument w = input("w", dtype, ws, draw(2, ws));
  const Argument dy = strided(input("dy", dtype, xs, draw(3, xs)));
  // One number per row stands for the other rank.
  Values of_others(std::size_t(s.t), 0.3 * double(s.others)), pulled(std::size_t(s.t), 0.7);
  const Values all = sum_of(row_dots_of(s, x.values, x.values, {}), of_others);
  const Argument squares = input("squares", DType::F32, {s.t}, all);
  const Argument rstd = input("rstd", DType::F32, rs, reciprocals(s, all));
  const Argument dots = input("dots",
                              DType::F32,
                              {s.t},
                              sum_of(row_dots_of(s, dy.values, x.values, w.values), pulled));
  const auto name = [&](const char* op) {
    return name_of_case(op, dtype, {s.t, s.columns, s.others});
  };
  cases.push_back({name("forward"),
                   {strided(output("y", dtype, xs)), output("rstd", DType::F32, rs), x, w, squares},
                   [s](Stream& stream, Pool&, const std::vector<Tensor>& t) {
                     shared_norm_forward(stream, t[0], t[1], t[2], t[3], t[4], s.norm());
                   },
                   [=](const std::vector<Argument>&) {
                     const Values r = reciprocals(s, all);
                     return std::vector{
                         whole(0, normed(s, x.values, w.values, r), tolerance_of(dtype)),
                         whole(1, r, 2e-6)};
                   }});
  // The other rank's part of the loss is a function of rstd alone, with w dy x = 0.7 per row.
  cases.push_back({name("dgrad"),
                   {strided(output("dx", dtype, xs)), dy, x, w, rstd, dots},
                   [s](Stream& stream, Pool&, const std::vector<Tensor>& t) {
                     shared_norm_dgrad(stream, t[0], t[1], t[2], t[3], t[4], t[5], s.norm());
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) {
                       const Values r =
                           reciprocals(s, sum_of(row_dots_of(s, at, at, {}), of_others));
                       return dot(dy.values, normed(s, at, w.values, r)) + dot(pulled, r);
                     };
                     return std::vector{finite_difference(0, x.values, loss, tolerance_of(dtype))};
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const Sizes& s : {Sizes{0, 6, 6}, {5, 7, 7}, {3, 24, 8}, {67, 384, 128}}) {
      add_dots(all, s, dtype);
      add_norm(all, s, dtype);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(SharedNorm,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

}  // namespace shared_norm_test
}  // namespace weft::kernels
