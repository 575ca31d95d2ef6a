#include "tests/kernels/conformance_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace rows_test {

Values indices(std::int64_t count, std::int64_t below) {
  Values index;
  // Every seventh names no row.
  for (std::int64_t i = 0; i < count; ++i) {
    index.push_back(i % 7 == 5 ? -1.0 : double(i * 31 % below));
  }
  return index;
}

void add_gather(std::vector<Case>& cases,
                std::int64_t r,
                std::int64_t t,
                std::int64_t d,
                DType dtype) {
  const Shape ys{r, d}, xs{t, d};
  const Argument x = strided(input("x", dtype, xs, draw(1, xs, 50)));
  const Argument index = input("index", DType::I32, {r}, indices(r, t));
  cases.push_back({name_of_case("gather_rows", dtype, {r, t, d}),
                   {strided(output("y", dtype, ys)), x, index},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     gather_rows(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>&) {
                     Values want;
                     for (const double i : index.values) {
                       for (std::int64_t c = 0; c < d; ++c) {
                         want.push_back(i < 0 ? 0.0
                                              : x.values[std::size_t(std::int64_t(i) * d + c)]);
                       }
                     }
                     return std::vector{whole(0, want, 0)};
                   }});
}

void add_sum(std::vector<Case>& cases,
             std::int64_t t,
             std::int64_t k,
             std::int64_t r,
             std::int64_t d,
             DType dtype) {
  const Shape ys{t, d}, xs{r, d};
  const Argument x = strided(input("x", dtype, xs, draw(1, xs)));
  const Argument index = strided(input("index", DType::I32, {t, k}, indices(t * k, r)));
  cases.push_back({name_of_case("sum_rows", dtype, {t, k, r, d}),
                   {strided(output("y", dtype, ys)), x, index},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     sum_rows(stream, a[0], a[1], a[2]);
                   },
                   [=](const std::vector<Argument>&) {
                     Values want(std::size_t(t * d));
                     for (std::size_t i = 0; i < index.values.size(); ++i) {
                       if (index.values[i] < 0) continue;
                       for (std::size_t c = 0; c < std::size_t(d); ++c) {
                         want[i / std::size_t(k) * std::size_t(d) + c] +=
                             x.values[std::size_t(index.values[i]) * std::size_t(d) + c];
                       }
                     }
                     return std::vector{whole(0, want, tolerance_of(dtype))};
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16, DType::I32}) {
    add_gather(all, 0, 3, 4, dtype);
    add_gather(all, 5, 3, 7, dtype);
    add_gather(all, 300, 40, 300, dtype);
  }
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_sum(all, 0, 2, 4, 5, dtype);
    add_sum(all, 1, 1, 1, 1, dtype);
    add_sum(all, 6, 3, 9, 7, dtype);
    add_sum(all, 60, 4, 100, 300, dtype);
    for (const std::int64_t k : {2, 6, 8, 9}) add_sum(all, 20, k, 100, 70, dtype);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

// More than caches keep, in rows that are not whole pieces.
TEST(Rows, ManyAreGatheredLikeFew) {
  constexpr std::int64_t kColumns = 260, kSources = 100, kRows = 66'000;
  Workbench bench(2);
  auto& [device, pool, stream] = bench;
  const Tensor x =
      Tensor::host_visible(pool, DType::F32, {kSources, kColumns}, tensor::Tag::Activations);
  const Tensor y =
      Tensor::host_visible(pool, DType::F32, {kRows, kColumns}, tensor::Tag::Activations);
  const Tensor index = Tensor::host_visible(pool, DType::I32, {kRows}, tensor::Tag::Activations);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.host<float>()[i] = float(i);
  const auto source = [](std::int64_t r) { return r % 11 == 0 ? -1 : r * 7 % kSources; };
  for (std::int64_t r = 0; r < kRows; ++r) {
    index.host<std::int32_t>()[r] = static_cast<std::int32_t>(source(r));
  }
  gather_rows(*stream, y, x, index);
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const float want = source(r) < 0 ? 0 : float(source(r) * kColumns + c);
      wrong += y.host<float>()[r * kColumns + c] != want;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Rows, BlocksOfRowsAreCopied) {
  Workbench bench(2);
  auto& [device, pool, stream] = bench;
  const Tensor x = Tensor::host_visible(pool, DType::F32, {6, 2}, tensor::Tag::Activations);
  const Tensor wide = Tensor::host_visible(pool, DType::F32, {6, 4}, tensor::Tag::Activations);
  const Tensor y = wide.columns(1, 2);
  for (int i = 0; i < 12; ++i) x.host<float>()[i] = float(i);
  for (int i = 0; i < 24; ++i) wide.host<float>()[i] = -1;
  copy_rows(*stream, y, x, std::vector<RowBlock>{{4, 0, 2}, {0, 3, 1}, {2, 2, 0}});
  const float* got = wide.host<float>();
  EXPECT_EQ((Values(got, got + 8)), (Values{-1, 8, 9, -1, -1, 10, 11, -1}));
  EXPECT_EQ((Values(got + 8, got + 16)), (Values{-1, -1, -1, -1, -1, 0, 1, -1}));
  EXPECT_THROW(copy_rows(*stream, y, x, std::vector<RowBlock>{{5, 0, 2}}), base::InternalError);
}

TEST(Rows, VectorsHaveRowsOfOneElement) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor x = Tensor::host_visible(pool, DType::I64, {4}, tensor::Tag::Activations);
  const Tensor y = Tensor::host_visible(pool, DType::I64, {4}, tensor::Tag::Activations);
  const Tensor index = Tensor::host_visible(pool, DType::I32, {4}, tensor::Tag::Activations);
  for (int i = 0; i < 4; ++i) {
    x.host<std::int64_t>()[i] = 10 * i;
    index.host<std::int32_t>()[i] = 3 - i;
  }
  gather_rows(*stream, y, x, index);
  EXPECT_EQ(y.host<std::int64_t>()[0], 30);
  copy_rows(*stream, y, x, std::vector<RowBlock>{{1, 0, 3}});
  EXPECT_EQ(y.host<std::int64_t>()[0], 10);
  index.host<std::int32_t>()[0] = 4;
  EXPECT_THROW(gather_rows(*stream, y, x, index), base::InternalError);
}

}  // namespace rows_test
}  // namespace weft::kernels
