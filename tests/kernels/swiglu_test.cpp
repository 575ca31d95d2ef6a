#include <cmath>

#include "tests/kernels/conformance_support.h"

namespace weft::kernels {
namespace swiglu_test {

// h: (gate | up) per row; p: a weight per row.
Values reference(std::int64_t rows, std::int64_t f, const Values& h, const Values& p) {
  Values y;
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t i = 0; i < f; ++i) {
      const double gate = h[std::size_t(t * 2 * f + i)], up = h[std::size_t(t * 2 * f + f + i)];
      y.push_back(gate / (1 + std::exp(-gate)) * up * p[std::size_t(t)]);
    }
  }
  return y;
}

void add_plain(std::vector<Case>& cases, std::int64_t t, std::int64_t f, DType dtype) {
  const Shape ys{t, f}, hs{t, 2 * f};
  const Values ones(std::size_t(t), 1.0);
  const Argument h = strided(input("h", dtype, hs, draw(1, hs, 3)));
  const Argument dy = strided(input("dy", dtype, ys, draw(2, ys)));
  cases.push_back({name_of_case("forward", dtype, ys),
                   {strided(output("y", dtype, ys)), h},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     swiglu_forward(stream, a[0], a[1]);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{
                         whole(0, reference(t, f, h.values, ones), tolerance_of(dtype))};
                   }});
  cases.push_back({name_of_case("dgrad", dtype, ys),
                   {strided(output("dh", dtype, hs)), dy, h},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     swiglu_dgrad(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](std::int64_t row, const Values& at) {
                       return dot(row_of(dy.values, f, row), reference(1, f, at, {1}));
                     };
                     return std::vector{
                         finite_difference_by_rows(0, h.values, 2 * f, loss, tolerance_of(dtype))};
                   }});
}

void add_weighted(std::vector<Case>& cases, std::int64_t t, std::int64_t f, DType dtype) {
  const Shape ys{t, f}, hs{t, 2 * f}, ps{t};
  const Argument h = strided(input("h", dtype, hs, draw(1, hs, 3)));
  const Argument dy = strided(input("dy", dtype, ys, draw(2, ys)));
  const Argument p = input("p", DType::F32, ps, draw(3, ps));
  cases.push_back({name_of_case("weighted_forward", dtype, ys),
                   {strided(output("y", dtype, ys)), h, p},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     weighted_swiglu_forward(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{
                         whole(0, reference(t, f, h.values, p.values), tolerance_of(dtype))};
                   }});
  cases.push_back({name_of_case("weighted_dgrad", dtype, ys),
                   {strided(output("dh", dtype, hs)), output("dp", DType::F32, ps), dy, h, p},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     weighted_swiglu_dgrad(stream, a[0], a[1], a[2], a[3], a[4]);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto by_h = [&](std::int64_t row, const Values& at) {
                       const Values weight{p.values[std::size_t(row)]};
                       return dot(row_of(dy.values, f, row), reference(1, f, at, weight));
                     };
                     const auto by_p = [&](const Values& at) {
                       return dot(dy.values, reference(t, f, h.values, at));
                     };
                     return std::vector{
                         finite_difference_by_rows(0, h.values, 2 * f, by_h, tolerance_of(dtype)),
                         finite_difference(1, p.values, by_p, 3e-6)};
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const auto& [t, f] : {std::pair{1, 1}, {0, 4}, {5, 7}, {300, 130}, {9, 64}, {5, 1040}}) {
      add_plain(all, t, f, dtype);
      add_weighted(all, t, f, dtype);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Swiglu, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

}  // namespace swiglu_test
}  // namespace weft::kernels
