#include <cmath>

#include "tests/kernels/conformance_support.h"

namespace weft::kernels {
namespace rms_norm_test {

constexpr double kEpsilon = 1e-5;

struct Sizes {
  std::int64_t t, columns, n;
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

Values reference(const Sizes& s, const Values& x, const Values& w) {
  const Values rstd = reciprocals(s, x);
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] * rstd[i / std::size_t(s.n)] * w[i % std::size_t(s.n)];
  }
  return y;
}

void add_cases(std::vector<Case>& cases, const Sizes& s, DType dtype) {
  const Shape xs{s.t, s.columns}, ws{s.n}, rs{s.t, s.columns / s.n};
  const auto name = [&](const std::string& op) {
    return name_of_case(op, dtype, {s.t, s.columns, s.n});
  };
  const Argument x = strided(input("x", dtype, xs, draw(1, xs, 2)));
  const Argument w = input("w", dtype, ws, draw(2, ws));
  const Argument dy = strided(input("dy", dtype, xs, draw(3, xs)));
  const Argument rstd = input("rstd", DType::F32, rs, reciprocals(s, x.values));
  cases.push_back({name("forward"),
                   {strided(output("y", dtype, xs)), output("rstd", DType::F32, rs), x, w},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     rms_norm_forward(stream, a[0], a[1], a[2], a[3], static_cast<float>(kEpsilon));
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{
                         whole(0, reference(s, x.values, w.values), tolerance_of(dtype)),
                         whole(1, reciprocals(s, x.values), 2e-6)};
                   }});
  cases.push_back({name("dgrad"),
                   {strided(output("dx", dtype, xs)), dy, x, w, rstd},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     rms_norm_dgrad(stream, a[0], a[1], a[2], a[3], a[4]);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) {
                       return dot(dy.values, reference(s, at, w.values));
                     };
                     return std::vector{finite_difference(0, x.values, loss, tolerance_of(dtype))};
                   }});
  const Argument residual = strided(input("residual", dtype, xs, draw(4, xs)));
  cases.push_back({name("dgrad_and_residual"),
                   {strided(output("dx", dtype, xs)), dy, x, w, rstd, residual},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     rms_norm_dgrad(stream, a[0], a[1], a[2], a[3], a[4], a[5]);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) {
                       return dot(dy.values, reference(s, at, w.values)) + dot(residual.values, at);
                     };
                     return std::vector{finite_difference(0, x.values, loss, tolerance_of(dtype))};
                   }});
  for (const Write write : {Write::Accumulate, Write::Assign}) {
    cases.push_back({name(name_of_wgrad(write)),
                     {weight_gradient("dw", ws, write), dy, x, rstd},
                     [write](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                       rms_norm_wgrad(stream, a[0], a[1], a[2], a[3], write);
                     },
                     [=](const std::vector<Argument>&) {
                       const auto loss = [&](const Values& at) {
                         return dot(dy.values, reference(s, x.values, at));
                       };
                       return std::vector{finite_difference(0, w.values, loss, 3e-6)};
                     }});
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const Sizes& s : {Sizes{1, 2, 2},
                           {0, 6, 6},
                           {5, 7, 7},
                           {3, 24, 8},
                           {300, 33, 11},
                           {2, 515, 515},
                           {67, 384, 128},
                           {5, 2048, 2048},
                           {2, 5120, 2560}}) {
      add_cases(all, s, dtype);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(RmsNorm, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

}  // namespace rms_norm_test
}  // namespace weft::kernels
