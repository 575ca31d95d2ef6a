#include <span>

#include "tests/kernels/conformance_support.h"
#include "weft/base/random.h"
#include "weft/base/text.h"
#include "weft/tensor/transfer.h"

namespace weft::kernels {
namespace cross_entropy_test {

constexpr double kScale = 0.25;

struct Result {
  Values loss, lse;
};

Result reference(std::int64_t v, const Values& logits, const Values& labels) {
  Result result;
  for (std::size_t t = 0; t < labels.size(); ++t) {
    double sum = 0;
    for (std::size_t i = 0; i < std::size_t(v); ++i)
      sum += std::exp(logits[t * std::size_t(v) + i]);
    result.lse.push_back(std::log(sum));
    const double label = labels[t];
    result.loss.push_back(
        label < 0 ? 0 : result.lse.back() - logits[t * std::size_t(v) + std::size_t(label)]);
  }
  return result;
}

void add_cases(std::vector<Case>& cases, std::int64_t t, std::int64_t v) {
  const Shape ls{t, v};
  Values chosen;
  for (std::int64_t i = 0; i < t; ++i) chosen.push_back(i % 3 == 1 ? -100.0 : double(i * 5 % v));
  const Argument logits = strided(input("logits", DType::F32, ls, draw(1, ls, 4)));
  const Argument labels = input("labels", DType::I32, {t}, chosen);
  const Argument lse = input("lse", DType::F32, {t}, reference(v, logits.values, chosen).lse);
  cases.push_back(
      {name_of_case("forward", DType::F32, ls),
       {output("loss", DType::F32, {t}), output("lse", DType::F32, {t}), logits, labels},
       [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
         cross_entropy_forward(stream, a[0], a[1], a[2], a[3]);
       },
       [=](const std::vector<Argument>&) {
         const Result want = reference(v, logits.values, chosen);
         return std::vector{whole(0, want.loss, 1e-6), whole(1, want.lse, 1e-6)};
       }});
  for (const DType dtype : {DType::F32, DType::BF16}) {
    cases.push_back({name_of_case("dgrad", dtype, ls),
                     {strided(output("dlogits", dtype, ls)), logits, lse, labels},
                     [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                       cross_entropy_dgrad(stream, a[0], a[1], a[2], a[3], float(kScale));
                     },
                     [=](const std::vector<Argument>&) {
                       const auto loss = [&](const Values& at) {
                         double sum = 0;
                         for (const double l : reference(v, at, chosen).loss) sum += kScale * l;
                         return sum;
                       };
                       return std::vector{
                           finite_difference(0, logits.values, loss, tolerance_of(dtype), 60)};
                     }});
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  add_cases(all, 1, 1);
  add_cases(all, 0, 5);
  add_cases(all, 4, 13);
  add_cases(all, 40, 2500);
  add_cases(all, 3, 20003);
  return all;
}

INSTANTIATE_TEST_SUITE_P(CrossEntropy,
                         Conformance,
                         testing::ValuesIn(on_devices(cases())),
                         case_name);

TEST(CrossEntropy, TheGradientMayReplaceTheLogits) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor logits = Tensor::host_visible(pool, DType::F32, {1, 2}, tensor::Tag::Activations);
  const Tensor lse = Tensor::host_visible(pool, DType::F32, {1}, tensor::Tag::Activations);
  const Tensor loss = Tensor::host_visible(pool, DType::F32, {1}, tensor::Tag::Activations);
  const Tensor labels = Tensor::host_visible(pool, DType::I32, {1}, tensor::Tag::Activations);
  logits.host<float>()[0] = logits.host<float>()[1] = 500;
  labels.host<std::int32_t>()[0] = 1;
  cross_entropy_forward(*stream, loss, lse, logits, labels);
  EXPECT_NEAR(loss.host<float>()[0], std::log(2.0), 1e-4);
  cross_entropy_dgrad(*stream, logits, logits, lse, labels, 1);
  EXPECT_NEAR(logits.host<float>()[0], 0.5, 1e-4);
  EXPECT_NEAR(logits.host<float>()[1], -0.5, 1e-4);
}

enum class Place { Beside, Over };  // where gradients are written, seen from the logits

struct Layout {
  Shape shape;
  std::int64_t margin = 0;  // columns left and right of the logits

  std::int64_t width() const { return shape[1] + 2 * margin; }
  bool is_inside(std::int64_t column) const {
    return column >= margin && column < margin + shape[1];
  }
};

constexpr float kOutside = 77;  // what the margins hold

std::vector<float> logits_of(const Layout& layout) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < layout.shape[0] * layout.width(); ++i) {
    const bool inside = layout.is_inside(i % layout.width());
    values.push_back(inside ? float(4 * base::normal(1, std::uint64_t(i))) : kOutside);
  }
  return values;
}

// Every third row has no label.
std::vector<std::int32_t> labels_of(const Shape& shape) {
  std::vector<std::int32_t> labels;
  for (std::int64_t t = 0; t < shape[0]; ++t) {
    labels.push_back(t % 3 == 1 ? -100 : std::int32_t((t + 1) * 7919 % shape[1]));
  }
  return labels;
}

using Bits = std::vector<std::byte>;

template <typename T>
Bits bits_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// The rows of the gradients in what was the logits and their margins, which are still what they
// were.
Bits bits_inside(const std::vector<float>& all, const Layout& layout, DType dtype) {
  const Bits bytes = bits_of(all);
  Bits inside;
  for (std::int64_t t = 0; t < layout.shape[0]; ++t) {
    for (std::int64_t i = 0; i < layout.width(); ++i) {
      if (layout.is_inside(i)) continue;
      EXPECT_EQ(all[std::size_t(t * layout.width() + i)], kOutside) << t << ", " << i;
    }
    const auto row = bytes.begin() + (t * layout.width() + layout.margin) * 4;
    inside.insert(inside.end(), row, row + layout.shape[1] * tensor::size_of(dtype));
  }
  return inside;
}

Bits gradients(DeviceKind kind, const Layout& layout, DType dtype, Place place) {
  Workbench bench(3, kind);
  auto& [device, pool, stream] = bench;
  const auto make = [&](DType of, Shape shape) {
    return Tensor(pool, of, shape, tensor::Tag::Activations);
  };
  const std::int64_t rows = layout.shape[0];
  const Tensor all = make(DType::F32, {rows, layout.width()}), beside = make(dtype, layout.shape);
  const Tensor logits = all.columns(layout.margin, layout.shape[1]);
  const Tensor loss = make(DType::F32, {rows}), lse = make(DType::F32, {rows});
  const Tensor labels = make(DType::I32, {rows});
  tensor::write<float>(*stream, all, logits_of(layout));
  tensor::write<std::int32_t>(*stream, labels, labels_of(layout.shape));
  cross_entropy_forward(*stream, loss, lse, logits, labels);
  const Tensor over = dtype == DType::F32 ? logits : logits.front_halves();
  cross_entropy_dgrad(*stream, place == Place::Over ? over : beside, logits, lse, labels, 0.25f);
  if (place == Place::Over) return bits_inside(tensor::read<float>(*stream, all), layout, dtype);
  return dtype == DType::F32 ? bits_of(tensor::read<float>(*stream, beside))
                             : bits_of(tensor::read<tensor::BFloat16>(*stream, beside));
}

TEST(CrossEntropy, GradientsOverTheLogitsHaveTheBitsOfThoseBesideThem) {
  for (const DeviceKind kind : devices::all_devices()) {
    for (const Shape& shape : {Shape{1, 1},
                               Shape{0, 5},
                               Shape{4, 13},
                               Shape{7, 2500},
                               Shape{3, 16384},
                               Shape{5, 20003}}) {
      for (const std::int64_t margin : {0, 3, 4}) {
        for (const DType dtype : {DType::F32, DType::BF16}) {
          SCOPED_TRACE(base::text("{}, margin {}, {}",
                                  name_of_case("dgrad", dtype, shape),
                                  margin,
                                  devices::name_of(kind)));
          const Layout layout{shape, margin};
          EXPECT_TRUE(gradients(kind, layout, dtype, Place::Over) ==
                      gradients(kind, layout, dtype, Place::Beside));
        }
      }
    }
  }
}

TEST(CrossEntropy, GradientsLieOverTheLogitsRowByRowOrNotAtAll) {
  Workbench bench;
  auto& [device, pool, stream] = bench;
  const Tensor all(pool, DType::F32, {2, 8}, tensor::Tag::Activations);
  const Tensor lse(pool, DType::F32, {2}, tensor::Tag::Activations);
  const Tensor labels(pool, DType::I32, {2}, tensor::Tag::Activations);
  const Tensor logits = all.columns(0, 4);
  for (const Tensor& wrong :
       {all.columns(2, 4), all.columns(4, 4), all.columns(2, 4).front_halves()}) {
    EXPECT_THROW(cross_entropy_dgrad(*stream, wrong, logits, lse, labels, 1), base::InternalError);
  }
}

}  // namespace cross_entropy_test
}  // namespace weft::kernels
