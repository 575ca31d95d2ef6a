#include <cmath>

#include "tests/kernels/conformance_support.h"

namespace weft::kernels {
namespace gate_test {

Values reference(std::int64_t rows, std::int64_t width, const Values& x, const Values& g) {
  Values y;
  for (std::int64_t t = 0; t < rows; ++t) {
    for (std::int64_t i = 0; i < width; ++i) {
      y.push_back(x[std::size_t(t * width + i)] / (1 + std::exp(-g[std::size_t(t)])));
    }
  }
  return y;
}

void add(std::vector<Case>& cases, std::int64_t t, std::int64_t d, DType dtype) {
  const Shape xs{t, d}, gs{t};
  const Argument x = strided(input("x", dtype, xs, draw(1, xs)));
  const Argument dy = strided(input("dy", dtype, xs, draw(2, xs)));
  const Argument g = input("g", DType::F32, gs, draw(3, gs, 3));
  cases.push_back({name_of_case("forward", dtype, xs),
                   {strided(output("y", dtype, xs)), x, g},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     gate_forward(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{
                         whole(0, reference(t, d, x.values, g.values), tolerance_of(dtype))};
                   }});
  cases.push_back({name_of_case("dgrad", dtype, xs),
                   {strided(output("dx", dtype, xs)), output("dg", DType::F32, gs), dy, x, g},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     gate_dgrad(stream, a[0], a[1], a[2], a[3], a[4]);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto by_x = [&](const Values& at) {
                       return dot(dy.values, reference(t, d, at, g.values));
                     };
                     const auto by_g = [&](const Values& at) {
                       return dot(dy.values, reference(t, d, x.values, at));
                     };
                     return std::vector{finite_difference(0, x.values, by_x, tolerance_of(dtype)),
                                        finite_difference(1, g.values, by_g, 3e-6)};
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const auto& [t, d] : {std::pair{1, 1}, {0, 4}, {5, 7}, {300, 130}, {9, 64}, {5, 1040}})
      add(all, t, d, dtype);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Gate, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

}  // namespace gate_test
}  // namespace weft::kernels
