#include "tests/kernels/conformance_support.h"
#include "tests/kernels/scratch_support.h"
#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace rows_test {

Values indices(std::int64_t count, std::int64_t below) {
  Values index;
  // Every seventh index is -1.
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

enum class Residual { None, Added };

void add_sum(std::vector<Case>& cases,
             std::int64_t t,
             std::int64_t k,
             std::int64_t r,
             std::int64_t d,
             DType dtype,
             Residual residual = Residual::None) {
  const Shape ys{t, d}, xs{r, d};
  const Argument x = strided(input("x", dtype, xs, draw(1, xs)));
  const Argument index = strided(input("index", DType::I32, {t, k}, indices(t * k, r)));
  std::vector<Argument> arguments{strided(output("y", dtype, ys)), x, index};
  const bool added = residual == Residual::Added;
  if (added) arguments.push_back(strided(input("residual", dtype, ys, draw(2, ys))));
  cases.push_back({name_of_case(added ? "sum_rows_residual" : "sum_rows", dtype, {t, k, r, d}),
                   arguments,
                   [added](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     sum_rows(stream, a[0], a[1], a[2], added ? a[3] : Tensor());
                   },
                   [=](const std::vector<Argument>& given) {
                     Values want = added ? given[3].values : Values(std::size_t(t * d));
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

// `d` columns; 0: vectors.
void add_copy(std::vector<Case>& cases,
              const char* name,
              std::int64_t t,
              std::int64_t d,
              DType dtype,
              const std::vector<RowBlock>& blocks) {
  const Shape shape = d == 0 ? Shape{t} : Shape{t, d};
  const auto columns = std::size_t(std::max<std::int64_t>(d, 1));
  Argument x = input("x", dtype, shape, draw(1, shape, 50)), y = output("y", dtype, shape);
  y.values = rounded(draw(2, shape, 50), dtype);
  if (d > 0) {
    x = strided(x);
    y = strided(y);
  }
  cases.push_back({name_of_case(base::text("copy_rows_{}", name), dtype, shape),
                   {y, x},
                   [=](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     copy_rows(stream, a[0], a[1], blocks);
                   },
                   [=](const std::vector<Argument>& given) {
                     Values want = given[0].values;
                     for (const RowBlock& block : blocks) {
                       for (std::size_t i = 0; i < std::size_t(block.rows) * columns; ++i) {
                         want[std::size_t(block.to) * columns + i] =
                             given[1].values[std::size_t(block.from) * columns + i];
                       }
                     }
                     return std::vector{whole(0, want, 0)};
                   }});
}

// More blocks than a GPU takes at once, some empty, from rows all over.
std::vector<RowBlock> many_blocks(std::int64_t count, std::int64_t rows) {
  std::vector<RowBlock> blocks;
  for (std::int64_t b = 0; b < count; ++b) {
    const std::int64_t place = count - 1 - b;
    blocks.push_back({.from = b * 37 % (rows - 2), .to = 3 * place, .rows = b % 3});
  }
  return blocks;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::F32, DType::BF16, DType::I64}) {
    add_copy(all, "nothing", 3, 4, dtype, {});
    add_copy(all, "some", 6, 2, dtype, {{4, 0, 2}, {0, 3, 1}, {2, 2, 0}});
    add_copy(all, "all", 50, 2400, dtype, {{0, 0, 50}});
    add_copy(all, "of_vectors", 6, 0, dtype, {{4, 0, 2}, {0, 3, 1}});
    for (const std::int64_t d : {0, 7, 64}) {
      add_copy(all, "many", 450, d, dtype, many_blocks(150, 450));
    }
  }
  for (const DType dtype : {DType::F32, DType::BF16, DType::I32}) {
    add_gather(all, 0, 3, 4, dtype);
    add_gather(all, 5, 3, 7, dtype);
    add_gather(all, 300, 40, 300, dtype);
    add_gather(all, 50, 40, 64, dtype);
    add_gather(all, 7, 9, 2400, dtype);
  }
  for (const DType dtype : {DType::F32, DType::BF16}) {
    add_sum(all, 0, 2, 4, 5, dtype);
    add_sum(all, 1, 1, 1, 1, dtype);
    add_sum(all, 6, 3, 9, 7, dtype);
    add_sum(all, 60, 4, 100, 300, dtype);
    for (const std::int64_t k : {2, 6, 8, 9}) {
      add_sum(all, 20, k, 100, 70, dtype);
      add_sum(all, 20, k, 100, 64, dtype);
      add_sum(all, 20, k, 100, 64, dtype, Residual::Added);
    }
    add_sum(all, 5, 8, 9, 2400, dtype);
    add_sum(all, 0, 2, 4, 5, dtype, Residual::Added);
    add_sum(all, 6, 3, 9, 7, dtype, Residual::Added);
    add_sum(all, 6, 1, 9, 72, dtype, Residual::Added);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Rows, Conformance, testing::ValuesIn(on_devices(cases())), case_name);

// Number of elements that differ from the source rows; rows are not whole pieces.
std::int64_t wrongly_gathered(DeviceKind kind, std::int64_t sources, std::int64_t rows) {
  constexpr std::int64_t kColumns = 260;
  Workbench bench(2, kind);
  auto& [device, pool, stream] = bench;
  const auto make = [&](DType dtype, const Shape& shape) {
    return Tensor::host_visible(pool, dtype, shape, tensor::Tag::Activations);
  };
  const Tensor x = make(DType::F32, {sources, kColumns}), y = make(DType::F32, {rows, kColumns});
  const Tensor index = make(DType::I32, {rows});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.host<float>()[i] = float(i);
  const auto source = [&](std::int64_t r) { return r % 11 == 0 ? -1 : r * 7 % sources; };
  for (std::int64_t r = 0; r < rows; ++r) {
    index.host<std::int32_t>()[r] = static_cast<std::int32_t>(source(r));
  }
  gather_rows(*stream, y, x, index);
  stream->synchronize();
  std::int64_t wrong = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const float want = source(r) < 0 ? 0 : float(source(r) * kColumns + c);
      wrong += y.host<float>()[r * kColumns + c] != want;
    }
  }
  return wrong;
}

TEST(Rows, MoreThanCachesKeepAreGatheredLikeFew) {
  for (const DeviceKind kind : devices::all_devices()) {
    SCOPED_TRACE(devices::name_of(kind));
    EXPECT_EQ(wrongly_gathered(kind, 100, 66'000), 0);
    EXPECT_EQ(wrongly_gathered(kind, 20'000, 30'000), 0);
  }
}

TEST(Rows, AResidualIsAddedAfterTheRowsAndBeforeTheSumIsRounded) {
  for (const DeviceKind kind : devices::all_devices()) {
    SCOPED_TRACE(devices::name_of(kind));
    Workbench bench(1, kind);
    auto& [device, pool, stream] = bench;
    const auto make = [&](DType dtype, const Shape& shape) {
      return Tensor::host_visible(pool, dtype, shape, tensor::Tag::Activations);
    };
    const Tensor x = make(DType::BF16, {2, 1}), y = make(DType::BF16, {1, 1});
    const Tensor residual = make(DType::BF16, {1, 1}), index = make(DType::I32, {1, 2});
    using tensor::BFloat16;
    x.host<BFloat16>()[0] = BFloat16(1.0f);
    x.host<BFloat16>()[1] = BFloat16(0x1p-9f);  // lost if 1 + 2^-9 is rounded separately
    residual.host<BFloat16>()[0] = BFloat16(-1.0f);
    for (int i = 0; i < 2; ++i) index.host<std::int32_t>()[i] = i;
    sum_rows(*stream, y, x, index, residual);
    stream->synchronize();
    EXPECT_EQ(static_cast<float>(y.host<BFloat16>()[0]), 0x1p-9f);
    EXPECT_THROW(sum_rows(*stream, make(DType::F32, {1, 1}), x, index, residual),
                 base::InternalError);
  }
}

class RowsOn : public testing::TestWithParam<DeviceKind> {};

TEST_P(RowsOn, BlocksOfRowsAreCopiedBetweenOthers) {
  Scratch s(GetParam());
  const Tensor x = s.tensor(DType::F32, {3, 2}, {0, 1, 2, 3, 4, 5});
  const Tensor wide = s.filled(DType::F32, {4, 4}, -1), y = wide.columns(1, 2);
  copy_rows(s.stream(), y, x, std::vector<RowBlock>{{1, 0, 2}, {0, 3, 1}, {2, 2, 0}});
  EXPECT_EQ(s.read(wide), (Values{-1, 2, 3, -1, -1, 4, 5, -1, -1, -1, -1, -1, -1, 0, 1, -1}));
  EXPECT_THROW(copy_rows(s.stream(), y, x, std::vector<RowBlock>{{2, 0, 2}}), base::InternalError);
  EXPECT_THROW(copy_rows(s.stream(), y, x, std::vector<RowBlock>{{0, 3, 2}}), base::InternalError);
}

TEST_P(RowsOn, VectorsHaveRowsOfOneElement) {
  Scratch s(GetParam());
  const Tensor x = s.tensor(DType::I64, {4}, {0, 10, 20, 30}), y = s.tensor(DType::I64, {4});
  const Tensor index = s.tensor(DType::I32, {4}, {3, 2, -1, 0});
  gather_rows(s.stream(), y, x, index);
  EXPECT_EQ(s.read(y), (Values{30, 20, 0, 0}));
  copy_rows(s.stream(), y, x, std::vector<RowBlock>{{1, 0, 3}});
  EXPECT_EQ(s.read(y), (Values{10, 20, 30, 0}));
}

TEST_P(RowsOn, AnIndexThatNamesNoRowIsAnError) {
  const auto error_of = [&](const std::string& operation, std::int64_t wrong) {
    Scratch s(GetParam());
    const Tensor x = s.tensor(DType::F32, {4, 2}), y = s.tensor(DType::F32, {3, 2});
    const Tensor index = s.tensor(DType::I32, {3}, {3, double(wrong), -1});
    const Tensor choice = s.tensor(DType::I32, {3, 2});
    return s.error_of([&](Stream& stream) {
      if (operation == "gather_rows") gather_rows(stream, y, x, index);
      if (operation == "sum_rows") sum_rows(stream, y, x, index.view({3, 1}));
      if (operation == "gather_choices") gather_choices(stream, y, x, index, choice);
    });
  };
  for (const char* operation : {"gather_rows", "sum_rows", "gather_choices"}) {
    EXPECT_EQ(error_of(operation, 0), "none");
    EXPECT_EQ(error_of(operation, 4), own_fault(operation, "row 4 of 4"));
    EXPECT_EQ(error_of(operation, -2), own_fault(operation, "row -2 of 4"));
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, RowsOn, testing::ValuesIn(devices::all_devices()), device_name);

}  // namespace rows_test
}  // namespace weft::kernels
