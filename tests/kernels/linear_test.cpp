#include "tests/kernels/conformance_support.h"
#include "weft/base/error.h"

namespace weft::kernels {
namespace linear_test {

struct Sizes {
  std::int64_t t, n, k;
};

// y (t, n) = x (t, k) w (n, k)^T
Values reference(const Sizes& s, const Values& x, const Values& w) {
  Values y(static_cast<std::size_t>(s.t * s.n));
  for (std::int64_t t = 0; t < s.t; ++t) {
    for (std::int64_t n = 0; n < s.n; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += x[std::size_t(t * s.k + k)] * w[std::size_t(n * s.k + k)];
      }
      y[std::size_t(t * s.n + n)] = sum;
    }
  }
  return y;
}

// Column of y that a row of w makes.
Values column_of(const Sizes& s, const Values& y, std::int64_t n) {
  Values column;
  for (std::int64_t t = 0; t < s.t; ++t) column.push_back(y[std::size_t(t * s.n + n)]);
  return column;
}

// `y_dtype` is separate, because a router's logits are always fp32.
void add_cases(std::vector<Case>& cases, const Sizes& s, DType dtype, DType y_dtype) {
  const Shape ys{s.t, s.n}, xs{s.t, s.k}, ws{s.n, s.k};
  const std::string of = y_dtype == dtype ? "" : "_fp32_y";
  const auto name = [&](const std::string& op) {
    return name_of_case(op + of, dtype, {s.t, s.n, s.k});
  };
  const Argument x = strided(input("x", dtype, xs, draw(1, xs)));
  const Argument w = strided(input("w", dtype, ws, draw(2, ws)));
  const Argument dy = strided(input("dy", y_dtype, ys, draw(3, ys)));
  cases.push_back({name("forward"),
                   {strided(output("y", y_dtype, ys)), x, w},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     linear_forward(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>& a) {
                     return std::vector{
                         whole(0, reference(s, a[1].values, a[2].values), tolerance_of(y_dtype))};
                   }});
  cases.push_back(
      {name("dgrad"),
       {strided(output("dx", dtype, xs)), dy, w},
       [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         linear_dgrad(stream, a[0], a[1], a[2]);
       },
       [=](const std::vector<Argument>& a) {
         const auto loss = [&](std::int64_t t, const Values& row) {
           return dot(row_of(a[1].values, s.n, t), reference({1, s.n, s.k}, row, a[2].values));
         };
         return std::vector{finite_difference_by_rows(0, x.values, s.k, loss, tolerance_of(dtype))};
       }});
  for (const Write write : {Write::Accumulate, Write::Assign}) {
    cases.push_back(
        {name(name_of_wgrad(write)),
         {strided(weight_gradient("dw", ws, write)), dy, x},
         [write](Stream& stream, Pool&, const std::vector<Tensor>& a) {
           linear_wgrad(stream, a[0], a[1], a[2], write);
         },
         [=](const std::vector<Argument>& a) {
           const auto loss = [&](std::int64_t n, const Values& row) {
             return dot(column_of(s, a[1].values, n), reference({s.t, 1, s.k}, a[2].values, row));
           };
           return std::vector{
               finite_difference_by_rows(0, w.values, s.k, loss, tolerance_of(DType::F32))};
         }});
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Sizes& s :
       {Sizes{1, 1, 1}, {0, 5, 3}, {7, 5, 3}, {1, 33, 20}, {131, 17, 65}, {270, 530, 18}}) {
    add_cases(all, s, DType::F32, DType::F32);
    add_cases(all, s, DType::BF16, DType::BF16);
  }
  add_cases(all, {9, 8, 16}, DType::BF16, DType::F32);
  // Large enough for tensor cores, which split fp32 into parts.
  add_cases(all, {300, 128, 144}, DType::BF16, DType::F32);
  add_cases(all, {1100, 3, 1300}, DType::BF16, DType::F32);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Linear, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

TEST(Linear, AShapeThatDoesNotFitIsNamed) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor y = Tensor::host_visible(pool, DType::F32, {2, 3}, tensor::Tag::Activations);
  const Tensor x = Tensor::host_visible(pool, DType::F32, {2, 4}, tensor::Tag::Activations);
  const Tensor w = Tensor::host_visible(pool, DType::F32, {3, 5}, tensor::Tag::Activations);
  EXPECT_THROW(linear_forward(*stream, y, x, w), base::InternalError);
}

}  // namespace linear_test
}  // namespace weft::kernels
