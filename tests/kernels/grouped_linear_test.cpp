#include <cmath>
#include <set>

#include "tests/kernels/conformance_support.h"
#include "tests/kernels/scratch_support.h"
#include "weft/base/text.h"
#include "weft/kernels/hopper_tile.h"

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
  std::int64_t first_row(std::int64_t expert) const {
    std::int64_t first = 0;
    for (std::int64_t e = 0; e < expert; ++e) first += rows[std::size_t(e)];
    return first;
  }
  std::int64_t expert_of(std::int64_t row) const {
    std::int64_t expert = 0;
    while (first_row(expert + 1) <= row) ++expert;
    return expert;
  }
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

double dot(const double* a, const double* b, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// Sum of dy y if row `row` of x is `x_row`; other rows are independent.
double loss_of_row(const Sizes& s,
                   const Values& dy,
                   const Values& w,
                   std::int64_t row,
                   const Values& x_row) {
  double sum = 0;
  const std::int64_t expert = s.expert_of(row);
  for (std::int64_t n = 0; n < s.n; ++n) {
    sum += dy[std::size_t(row * s.n + n)] *
           dot(x_row.data(), w.data() + (expert * s.n + n) * s.k, s.k);
  }
  return sum;
}
// Sum of dy y if row `row` of all experts' weights is `w_row`.
double loss_of_weights(const Sizes& s,
                       const Values& dy,
                       const Values& x,
                       std::int64_t row,
                       const Values& w_row) {
  double sum = 0;
  const std::int64_t expert = row / s.n, n = row % s.n;
  for (std::int64_t r = s.first_row(expert); r < s.first_row(expert + 1); ++r) {
    sum += dy[std::size_t(r * s.n + n)] * dot(x.data() + r * s.k, w_row.data(), s.k);
  }
  return sum;
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
                     const auto loss = [&](std::int64_t row, const Values& at) {
                       return loss_of_row(s, dy.values, w.values, row, at);
                     };
                     return std::vector{
                         finite_difference_by_rows(0, x.values, s.k, loss, tolerance_of(dtype))};
                   }});
  for (const Write write : {Write::Accumulate, Write::Assign}) {
    cases.push_back(
        {name(name_of_wgrad(write)),
         {weight_gradient("dw", ws, write), dy, x, rows},
         [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
           grouped_linear_wgrad(stream, a[0], a[1], a[2], a[3], write);
         },
         [=](const std::vector<Argument>&) {
           const auto loss = [&](std::int64_t row, const Values& at) {
             return loss_of_weights(s, dy.values, x.values, row, at);
           };
           return std::vector{
               finite_difference_by_rows(0, w.values, s.k, loss, tolerance_of(DType::F32))};
         }});
  }
}

// Widths that select each tile of the Hopper kernel, for results of n and of k columns.
const std::vector<Sizes> kOfTiles{{"n_128", {3, 0, 130, 1}, 128, 64},
                                  {"n_256", {3, 0, 130, 1}, 256, 64},
                                  {"n_384", {3, 0, 130, 1}, 384, 64},
                                  {"k_128", {3, 0, 130, 1}, 64, 128},
                                  {"k_256", {3, 0, 130, 1}, 64, 256},
                                  {"k_384", {3, 0, 130, 1}, 64, 384}};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_cases(all, {"uneven", {3, 0, 7, 1}, 5, 6}, dtype);
    add_cases(all, {"all_to_one", {0, 0, 300, 0}, 33, 17}, dtype);
    add_cases(all, {"no_rows", {0, 0}, 4, 3}, dtype);
    add_cases(all, {"one_row", {0, 1}, 1, 1}, dtype);
    // Sizes for a GPU's tensor cores: multiples of 8.
    add_cases(all, {"eights_long", {3, 0, 130, 1}, 16, 24}, dtype);
    add_cases(all, {"eights_wide", {2, 5}, 8, 264}, dtype);
    add_cases(all, {"strips", {3, 0, 70, 1}, 64, 128}, dtype);  // also for their weight gradients
  }
  for (const Sizes& sizes : kOfTiles) add_cases(all, sizes, DType::BF16);
  return all;
}

TEST(GroupedLinear, EveryTileOfHopperHasACaseThatChoosesIt) {
  using hopper::Pass;
  const hopper::Card card{.is_hopper = true, .shared_bytes = hopper::kMostSharedBytes};
  for (const Pass pass : {Pass::Forward, Pass::Dgrad, Pass::Wgrad}) {
    std::set<int> chosen;
    for (const Sizes& s : kOfTiles) {
      const std::int64_t columns = pass == Pass::Forward ? s.n : s.k;
      chosen.insert(hopper::choose_tile({.pass = pass, .n = columns}, card).best);
    }
    for (int i = 0; i < int(hopper::candidates_of(pass).size()); ++i) {
      EXPECT_TRUE(chosen.contains(i))
          << "add to kOfTiles: " << hopper::word(pass) << ", "
          << hopper::to_text(hopper::candidates_of(pass)[std::size_t(i)].tile);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GroupedLinear,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

// Room for rows of two experts, partly used.
struct Roomy {
  DType dtype = DType::F32;
  std::int64_t n = 0, k = 0;
  std::int64_t rows = 0, first = 0, second = 0;  // room, and rows of each expert

  std::int64_t taken() const { return first + second; }
};

// The second one has sizes for tensor cores, and more rows than a tile.
const std::vector<Roomy> kRooms{
    {.dtype = DType::F32, .n = 3, .k = 2, .rows = 7, .first = 1, .second = 2},
    {.dtype = DType::BF16, .n = 128, .k = 64, .rows = 300, .first = 130, .second = 70}};

// `count` times `value`, then `then` up to `all`.
Values values_then(std::int64_t count, double value, std::int64_t all, double then) {
  Values values(std::size_t(all), then);
  std::fill_n(values.begin(), count, value);
  return values;
}

class GroupedLinearRoom : public testing::TestWithParam<DeviceKind> {};

// All values are 1 except behind the rows, so that every sum is exact.
TEST_P(GroupedLinearRoom, BehindTheRowsIsNeitherReadNorWritten) {
  for (const Roomy& r : kRooms) {
    SCOPED_TRACE(tensor::name_of(r.dtype));
    Scratch s(GetParam());
    const double none = std::nan("");
    const auto y = double(r.k), dx = double(r.n), first = double(r.first),
               second = double(r.second);
    const auto of_rows = [&](std::int64_t width, double value, double behind) {
      return values_then(r.taken() * width, value, r.rows * width, behind);
    };
    const Tensor x = s.tensor(r.dtype, {r.rows, r.k}, of_rows(r.k, 1, none));
    const Tensor dy = s.tensor(r.dtype, {r.rows, r.n}, of_rows(r.n, 1, none));
    const Tensor w = s.filled(r.dtype, {2, r.n, r.k}, 1);
    const Tensor ys = s.filled(r.dtype, {r.rows, r.n}, -5);
    const Tensor dxs = s.filled(r.dtype, {r.rows, r.k}, -5);
    const Tensor dw = s.tensor(DType::F32, {2, r.n, r.k});
    const Tensor counts = s.tensor(DType::I64, {2}, {first, second});
    grouped_linear_forward(s.stream(), ys, x, w, counts);
    EXPECT_EQ(s.read(ys), of_rows(r.n, y, -5));
    grouped_linear_dgrad(s.stream(), dxs, dy, w, counts);
    EXPECT_EQ(s.read(dxs), of_rows(r.k, dx, -5));
    const std::int64_t weights = r.n * r.k;
    grouped_linear_wgrad(s.stream(), dw, dy, x, counts, Write::Accumulate);
    EXPECT_EQ(s.read(dw), values_then(weights, first, 2 * weights, second));
    const Tensor fewer = s.tensor(DType::I64, {2}, {0, 1});
    grouped_linear_wgrad(s.stream(), dw, dy, x, fewer, Write::Assign);
    EXPECT_EQ(s.read(dw), values_then(weights, 0, 2 * weights, 1));
  }
}

TEST_P(GroupedLinearRoom, CountsThatDoNotFitAreErrors) {
  for (const Roomy& r : kRooms) {
    const auto fault_of = [&](std::int64_t first, std::int64_t second, const char* operation) {
      Scratch s(GetParam());
      const Tensor x = s.tensor(r.dtype, {r.rows, r.k}), y = s.tensor(r.dtype, {r.rows, r.n});
      const Tensor w = s.tensor(r.dtype, {2, r.n, r.k}), dw = s.tensor(DType::F32, {2, r.n, r.k});
      const Tensor rows = s.tensor(DType::I64, {2}, {double(first), double(second)});
      return s.error_of([&](Stream& stream) {
        const std::string_view name = operation;
        if (name == "grouped_linear_forward") grouped_linear_forward(stream, y, x, w, rows);
        if (name == "grouped_linear_dgrad") grouped_linear_dgrad(stream, x, y, w, rows);
        if (name == "grouped_linear_wgrad") {
          grouped_linear_wgrad(stream, dw, y, x, rows, Write::Assign);
        }
      });
    };
    for (const char* operation :
         {"grouped_linear_forward", "grouped_linear_dgrad", "grouped_linear_wgrad"}) {
      const auto beyond = [&](std::int64_t count, int expert, std::int64_t rest) {
        return outside_fault(operation,
                             base::text("{} rows for expert {} of this rank, and room for {} more",
                                        count,
                                        expert,
                                        rest));
      };
      EXPECT_EQ(fault_of(r.rows, 0, operation), "none");
      EXPECT_EQ(fault_of(-1, 2, operation), beyond(-1, 0, r.rows));
      EXPECT_EQ(fault_of(2, -1, operation), beyond(-1, 1, r.rows - 2));
      EXPECT_EQ(fault_of(r.rows + 1, 0, operation), beyond(r.rows + 1, 0, r.rows));
      EXPECT_EQ(fault_of(4, r.rows - 3, operation), beyond(r.rows - 3, 1, r.rows - 4));
    }
  }
}

// Integers from -2 to 2, so that sums of products are exact.
double small(std::int64_t i) { return double(i * 7 % 5 - 2); }

// More tiles than a GPU computes at once, with edges and without a partner, for each tile width.
TEST_P(GroupedLinearRoom, ManyRowsOfAllLengthsAreExact) {
  const bool on_gpu = GetParam() == DeviceKind::Cuda;
  const std::int64_t experts = on_gpu ? 48 : 5, depth = 200;
  const std::vector<std::int64_t>
      lengths{on_gpu ? 256 : 2, 0, 65, 1, 129, on_gpu ? 513 : 3, 1, 500};
  std::vector<std::int64_t> rows;
  for (std::int64_t e = 0; e < experts; ++e) rows.push_back(lengths[std::size_t(e) % 8]);
  double sum = 0;  // over the depth
  for (std::int64_t d = 0; d < depth; ++d) sum += small(d) * small(3 * d + 1);
  for (const std::int64_t width :
       on_gpu ? std::vector<std::int64_t>{128, 384, 512} : std::vector<std::int64_t>{64}) {
    SCOPED_TRACE(width);
    const Sizes s{"", rows, width, depth};
    const auto of_expert = [](std::int64_t e) { return double(e % 3 + 1); };
    Values factor, expected, forward_w, dgrad_w;
    for (std::int64_t e = 0; e < experts; ++e) {
      for (std::int64_t r = s.first_row(e); r < s.first_row(e) + rows[std::size_t(e)]; ++r) {
        for (std::int64_t d = 0; d < depth; ++d) factor.push_back(small(r) * small(d));
        for (std::int64_t i = 0; i < width; ++i) {
          expected.push_back(small(r) * of_expert(e) * small(i + 3) * sum);
        }
      }
      for (std::int64_t i = 0; i < width; ++i) {
        for (std::int64_t d = 0; d < depth; ++d) {
          forward_w.push_back(of_expert(e) * small(i + 3) * small(3 * d + 1));
        }
      }
      for (std::int64_t d = 0; d < depth; ++d) {
        for (std::int64_t i = 0; i < width; ++i) {
          dgrad_w.push_back(of_expert(e) * small(i + 3) * small(3 * d + 1));
        }
      }
    }
    expected = rounded(expected, DType::BF16);
    Scratch scratch(GetParam());
    const Tensor counts = scratch.tensor(DType::I64, {experts}, Values(rows.begin(), rows.end()));
    const Tensor in = scratch.tensor(DType::BF16, {s.total(), depth}, factor);
    const Tensor out = scratch.filled(DType::BF16, {s.total(), width}, -5);
    const Tensor w = scratch.tensor(DType::BF16, {experts, width, depth}, forward_w);
    grouped_linear_forward(scratch.stream(), out, in, w, counts);
    EXPECT_TRUE(scratch.read(out) == expected) << "forward";
    const Tensor dx = scratch.filled(DType::BF16, {s.total(), width}, -5);
    const Tensor w_back = scratch.tensor(DType::BF16, {experts, depth, width}, dgrad_w);
    grouped_linear_dgrad(scratch.stream(), dx, in, w_back, counts);
    EXPECT_TRUE(scratch.read(dx) == expected) << "dgrad";
  }
}

// More tiles than a GPU computes at once, with edges and without a partner, for each tile width.
// Sums are short, long or empty in turn.
TEST_P(GroupedLinearRoom, ManyWeightGradientsOfAllLengthsAreExact) {
  const bool on_gpu = GetParam() == DeviceKind::Cuda;
  const std::int64_t experts = on_gpu ? 48 : 6, n = on_gpu ? 384 : 64;
  const std::vector<std::int64_t> lengths{256, 0, 1100, 64, 512, 513, 1, 700};
  std::vector<std::int64_t> rows;
  for (std::int64_t e = 0; e < experts; ++e) {
    rows.push_back(lengths[std::size_t(e) % lengths.size()] + e % 3);
  }
  for (const std::int64_t k :
       on_gpu ? std::vector<std::int64_t>{128, 448} : std::vector<std::int64_t>{64}) {
    SCOPED_TRACE(k);
    const Sizes s{"", rows, n, k};
    Values x, dy, sums;
    for (std::int64_t e = 0, row = 0; e < experts; ++e) {
      double sum = 0;
      for (std::int64_t r = 0; r < rows[std::size_t(e)]; ++r, ++row) {
        const double of_x = small(row + 1), of_dy = small(row * row + e);
        sum += of_x * of_dy;
        for (std::int64_t i = 0; i < k; ++i) x.push_back(of_x * small(i));
        for (std::int64_t i = 0; i < n; ++i) dy.push_back(of_dy * small(i + 3));
      }
      sums.push_back(sum);
    }
    Scratch scratch(GetParam());
    const Tensor xs = scratch.tensor(DType::BF16, {s.total(), k}, x);
    const Tensor dys = scratch.tensor(DType::BF16, {s.total(), n}, dy);
    const Tensor counts = scratch.tensor(DType::I64, {experts}, Values(rows.begin(), rows.end()));
    const Tensor dw = scratch.filled(DType::F32, {experts, n, k}, 0);
    for (int times = 1; times <= 3; ++times) {
      const Write write = times == 1 ? Write::Assign : Write::Accumulate;
      grouped_linear_wgrad(scratch.stream(), dw, dys, xs, counts, write);
      const Values got = scratch.read(dw);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < std::int64_t(got.size()); ++i) {
        const double weight = small(i / k % n + 3) * small(i % k);
        wrong += got[std::size_t(i)] != times * weight * sums[std::size_t(i / (n * k))] ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0) << "after " << times;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GroupedLinear,
                         GroupedLinearRoom,
                         testing::ValuesIn(devices::all_devices()),
                         device_name);

}  // namespace grouped_linear_test
}  // namespace weft::kernels
