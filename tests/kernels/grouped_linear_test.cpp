#include "tests/kernels/conformance_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace grouped_linear_test {

struct Sizes {
  std::string name;
  std::vector<std::int64_t> rows;
  std::int64_t n, k;

  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::int64_t r : rows) sum += r;
    return sum;
  }
  std::int64_t experts() const { return static_cast<std::int64_t>(rows.size()); }
};

Values reference(const Sizes& s, const Values& x, const Values& w) {
  Values y;
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < s.experts(); ++e) {
    for (std::int64_t r = 0; r < s.rows[std::size_t(e)]; ++r, ++row) {
      for (std::int64_t n = 0; n < s.n; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < s.k; ++k) {
          sum += x[std::size_t(row * s.k + k)] * w[std::size_t((e * s.n + n) * s.k + k)];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

void add_cases(std::vector<Case>& cases, const Sizes& s, DType dtype) {
  const Shape ys{s.total(), s.n}, xs{s.total(), s.k}, ws{s.experts(), s.n, s.k};
  const auto name = [&](const std::string& op) {
    return base::text("{}_{}_{}", op, s.name, tensor::name_of(dtype));
  };
  const Argument x = input("x", dtype, xs, draw(1, xs)), w = input("w", dtype, ws, draw(2, ws));
  const Argument dy = input("dy", dtype, ys, draw(3, ys));
  const Argument rows =
      input("rows", DType::I64, {s.experts()}, Values(s.rows.begin(), s.rows.end()));
  cases.push_back({name("forward"),
                   {output("y", dtype, ys), x, w, rows},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     grouped_linear_forward(stream, a[0], a[1], a[2], a[3]);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{
                         whole(0, reference(s, x.values, w.values), tolerance_of(dtype))};
                   }});
  cases.push_back({name("dgrad"),
                   {output("dx", dtype, xs), dy, w, rows},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     grouped_linear_dgrad(stream, a[0], a[1], a[2], a[3]);
                   },
                   [=](const std::vector<Argument>&) {
                     const auto loss = [&](const Values& at) {
                       return dot(dy.values, reference(s, at, w.values));
                     };
                     return std::vector{finite_difference(0, x.values, loss, tolerance_of(dtype))};
                   }});
  for (const Write write : {Write::Accumulate, Write::Assign}) {
    cases.push_back({name(name_of_wgrad(write)),
                     {weight_gradient("dw", ws, write), dy, x, rows},
                     [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                       grouped_linear_wgrad(stream, a[0], a[1], a[2], a[3], write);
                     },
                     [=](const std::vector<Argument>&) {
                       const auto loss = [&](const Values& at) {
                         return dot(dy.values, reference(s, x.values, at));
                       };
                       return std::vector{
                           finite_difference(0, w.values, loss, tolerance_of(DType::F32))};
                     }});
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_cases(all, {"uneven", {3, 0, 7, 1}, 5, 6}, dtype);
    add_cases(all, {"all_to_one", {0, 0, 300, 0}, 33, 17}, dtype);
    add_cases(all, {"no_rows", {0, 0}, 4, 3}, dtype);
    add_cases(all, {"one_row", {0, 1}, 1, 1}, dtype);
    // Sizes that a GPU's tensor cores take: multiples of 8.
    add_cases(all, {"eights_long", {3, 0, 130, 1}, 16, 24}, dtype);
    add_cases(all, {"eights_wide", {2, 5}, 8, 264}, dtype);
    add_cases(all, {"strips", {3, 0, 70, 1}, 64, 128}, dtype);  // for their weight gradients too
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(GroupedLinear,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

// Room for seven rows, three of them taken.
struct Roomy {
  Workbench bench;
  Stream* stream = bench.stream.get();
  Tensor x = filled({7, 2}, 1), w = filled({2, 3, 2}, 1), y = filled({7, 3}, -5);

  Tensor filled(const Shape& shape, float value) {
    Tensor t = Tensor::host_visible(bench.pool, DType::F32, shape, tensor::Tag::Workspace);
    std::fill_n(t.host<float>(), t.elements(), value);
    return t;
  }
  Tensor counts(std::int64_t first, std::int64_t second) {
    Tensor t = Tensor::host_visible(bench.pool, DType::I64, {2}, tensor::Tag::Workspace);
    t.host<std::int64_t>()[0] = first;
    t.host<std::int64_t>()[1] = second;
    return t;
  }
};

TEST(GroupedLinearRoom, BehindTheRowsIsNeitherReadNorWritten) {
  Roomy r;
  for (int i = 3 * 2; i < 7 * 2; ++i) r.x.host<float>()[i] = std::nanf("");
  const Tensor dw = r.filled({2, 3, 2}, 0), dx = r.filled({7, 2}, -5);
  const Tensor rows = r.counts(1, 2);
  grouped_linear_forward(*r.stream, r.y, r.x, r.w, rows);
  for (int i = 0; i < 7 * 3; ++i) EXPECT_EQ(r.y.host<float>()[i], i < 3 * 3 ? 2 : -5) << i;
  for (int i = 3 * 3; i < 7 * 3; ++i) r.y.host<float>()[i] = std::nanf("");
  grouped_linear_dgrad(*r.stream, dx, r.y, r.w, rows);
  for (int i = 0; i < 7 * 2; ++i) EXPECT_EQ(dx.host<float>()[i], i < 3 * 2 ? 6 : -5) << i;
  grouped_linear_wgrad(*r.stream, dw, r.y, r.x, rows, Write::Accumulate);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(dw.host<float>()[i], i < 6 ? 2 : 4) << i;
  grouped_linear_wgrad(*r.stream, dw, r.y, r.x, r.counts(0, 1), Write::Assign);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(dw.host<float>()[i], i < 6 ? 0 : 2) << i;
}

TEST(GroupedLinearRoom, CountsThatDoNotFitAreErrors) {
  for (const auto& [first, second] : {std::pair{-1, 2}, {2, -1}, {8, 0}, {4, 4}}) {
    Roomy r;
    EXPECT_THROW(grouped_linear_forward(*r.stream, r.y, r.x, r.w, r.counts(first, second)),
                 base::SystemError)
        << first << " " << second;
  }
}

}  // namespace grouped_linear_test
}  // namespace weft::kernels
