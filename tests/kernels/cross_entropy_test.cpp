#include <span>

#include "tests/kernels/conformance_support.h"
#include "tests/kernels/scratch_support.h"
#include "weft/base/random.h"
#include "weft/base/text.h"
#include "weft/tensor/transfer.h"

namespace weft::kernels {
namespace cross_entropy_test {

constexpr double kScale = 0.25;

// Sum of other ranks' logits, and the label's logit there.
constexpr double kSumElsewhere = 2.5, kLogitElsewhere = 0.7;

struct Vocabulary {
  std::int64_t own = 0;
  OtherIds others = {};

  bool is_shared() const { return others.before + others.behind > 0; }
  std::int64_t all() const { return others.before + own + others.behind; }
  bool has(double label) const {
    return label >= double(others.before) && label < double(others.before + own);
  }
};

struct Result {
  Values sums, lse, loss;  // sums: pairs
};

Result reference(const Vocabulary& vocabulary, const Values& logits, const Values& labels) {
  Result result;
  for (std::size_t t = 0; t < labels.size(); ++t) {
    const double* row = logits.data() + std::int64_t(t) * vocabulary.own;
    double sum = 0;
    for (std::int64_t i = 0; i < vocabulary.own; ++i) sum += std::exp(row[i]);
    const double label = labels[t];
    const bool own = vocabulary.has(label);
    const double logit = own ? row[std::int64_t(label) - vocabulary.others.before] : 0;
    result.sums.push_back(std::log(sum));
    result.sums.push_back(logit);
    result.lse.push_back(std::log(sum + (vocabulary.is_shared() ? kSumElsewhere : 0)));
    result.loss.push_back(label < 0 ? 0 : result.lse.back() - (own ? logit : kLogitElsewhere));
  }
  return result;
}

void add_cases(std::vector<Case>& cases, std::int64_t t, const Vocabulary& vocabulary) {
  const Shape ls{t, vocabulary.own};
  const OtherIds others = vocabulary.others;
  const std::string shared = vocabulary.is_shared() ? "part_" : "";
  Values chosen;
  for (std::int64_t i = 0; i < t; ++i) {
    chosen.push_back(i % 3 == 1 ? -100.0 : double(i * 5 % vocabulary.all()));
  }
  const Argument logits = strided(input("logits", DType::F32, ls, draw(1, ls, 4)));
  const Argument labels = input("labels", DType::I32, {t}, chosen);
  const Argument lse =
      input("lse", DType::F32, {t}, reference(vocabulary, logits.values, chosen).lse);
  cases.push_back({name_of_case(shared + "sums", DType::F32, ls),
                   {output("sums", DType::F32, {t, 2}), logits, labels},
                   [others](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     cross_entropy_sums(stream, a[0], a[1], a[2], others);
                   },
                   [=](const std::vector<Argument>&) {
                     const Result want = reference(vocabulary, logits.values, chosen);
                     return std::vector{whole(0, want.sums, 1e-6)};
                   }});
  for (const DType dtype : {DType::F32, DType::BF16}) {
    cases.push_back({name_of_case(shared + "dgrad", dtype, ls),
                     {strided(output("dlogits", dtype, ls)), logits, lse, labels},
                     [others](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                       cross_entropy_dgrad(stream, a[0], a[1], a[2], a[3], float(kScale), others);
                     },
                     [=](const std::vector<Argument>&) {
                       const auto loss = [&](const Values& at) {
                         double sum = 0;
                         for (const double l : reference(vocabulary, at, chosen).loss)
                           sum += kScale * l;
                         return sum;
                       };
                       return std::vector{
                           finite_difference(0, logits.values, loss, tolerance_of(dtype), 60)};
                     }});
  }
}

void add_forward(std::vector<Case>& cases, std::int64_t t, std::int64_t parts) {
  const Shape ss{parts * t, 2};
  const Argument sums = input("sums", DType::F32, ss, draw(3, ss, 4));
  Values chosen, lse, loss;
  for (std::int64_t i = 0; i < t; ++i) {
    chosen.push_back(i % 3 == 1 ? -1.0 : double(i));
    double sum = 0, of_label = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const auto row = std::size_t(2 * (part * t + i));
      sum += std::exp(sums.values[row]);
      of_label += sums.values[row + 1];
    }
    lse.push_back(std::log(sum));
    loss.push_back(chosen.back() < 0 ? 0 : lse.back() - of_label);
  }
  cases.push_back({name_of_case("forward", DType::F32, {parts, t}),
                   {output("loss", DType::F32, {t}),
                    output("lse", DType::F32, {t}),
                    sums,
                    input("labels", DType::I32, {t}, chosen)},
                   [](Stream& stream, Pool&, const std::vector<Tensor>& a) {
                     cross_entropy_forward(stream, a[0], a[1], a[2], a[3]);
                   },
                   [=](const std::vector<Argument>&) {
                     return std::vector{whole(0, loss, 1e-6), whole(1, lse, 1e-6)};
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  add_cases(all, 1, {1});
  add_cases(all, 0, {5});
  add_cases(all, 4, {13});
  add_cases(all, 40, {2500});
  add_cases(all, 3, {20003});
  add_cases(all, 1, {1, {.before = 0, .behind = 1}});
  add_cases(all, 9, {13, {.before = 5, .behind = 7}});
  add_cases(all, 40, {2500, {.before = 90, .behind = 0}});
  for (const std::int64_t parts : {1, 2, 5}) {
    for (const std::int64_t t : {0, 1, 700}) add_forward(all, t, parts);
  }
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
  const Tensor sums(pool, DType::F32, {1, 2}, tensor::Tag::Activations);
  logits.host<float>()[0] = logits.host<float>()[1] = 500;
  labels.host<std::int32_t>()[0] = 1;
  cross_entropy_sums(*stream, sums, logits, labels);
  cross_entropy_forward(*stream, loss, lse, sums, labels);
  EXPECT_NEAR(loss.host<float>()[0], std::log(2.0), 1e-4);
  cross_entropy_dgrad(*stream, logits, logits, lse, labels, 1);
  EXPECT_NEAR(logits.host<float>()[0], 0.5, 1e-4);
  EXPECT_NEAR(logits.host<float>()[1], -0.5, 1e-4);
}

enum class Place { Beside, Over };  // place of the gradients relative to the logits

struct Layout {
  Shape shape;
  std::int64_t margin = 0;  // columns left and right of the logits

  std::int64_t width() const { return shape[1] + 2 * margin; }
  bool is_inside(std::int64_t column) const {
    return column >= margin && column < margin + shape[1];
  }
};

constexpr float kOutside = 77;  // contents of the margins

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

// Gradient rows in the memory of the logits; checks that the margins are unchanged.
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
  const Tensor labels = make(DType::I32, {rows}), sums = make(DType::F32, {rows, 2});
  tensor::write<float>(*stream, all, logits_of(layout));
  tensor::write<std::int32_t>(*stream, labels, labels_of(layout.shape));
  cross_entropy_sums(*stream, sums, logits, labels);
  cross_entropy_forward(*stream, loss, lse, sums, labels);
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

// With one rank, its sums are the result, bit by bit.
TEST(CrossEntropy, OfOnePartTheSumsAreTheResult) {
  for (const DeviceKind kind : devices::all_devices()) {
    Workbench bench(1, kind);
    auto& [device, pool, stream] = bench;
    const Layout layout{{7, 2500}};
    const auto make = [&](DType of, Shape shape) {
      return Tensor(pool, of, shape, tensor::Tag::Activations);
    };
    const Tensor logits = make(DType::F32, layout.shape), labels = make(DType::I32, {7});
    const Tensor sums = make(DType::F32, {7, 2}), loss = make(DType::F32, {7});
    const Tensor lse = make(DType::F32, {7});
    const std::vector<std::int32_t> label_of = labels_of(layout.shape);
    tensor::write<float>(*stream, logits, logits_of(layout));
    tensor::write<std::int32_t>(*stream, labels, label_of);
    cross_entropy_sums(*stream, sums, logits, labels);
    cross_entropy_forward(*stream, loss, lse, sums, labels);
    const std::vector<float> parts = tensor::read<float>(*stream, sums);
    const std::vector<float> all = tensor::read<float>(*stream, lse);
    const std::vector<float> losses = tensor::read<float>(*stream, loss);
    for (std::size_t t = 0; t < 7; ++t) {
      EXPECT_EQ(all[t], parts[2 * t]);
      EXPECT_EQ(losses[t], label_of[t] < 0 ? 0.0f : parts[2 * t] - parts[2 * t + 1]);
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

class CrossEntropyOn : public testing::TestWithParam<DeviceKind> {};

TEST_P(CrossEntropyOn, ALabelOutsideTheVocabularyIsAnError) {
  const auto error_of = [&](const std::string& operation, double label, const OtherIds& others) {
    Scratch s(GetParam());
    const Tensor logits = s.tensor(DType::F32, {3, 5}), dlogits = s.tensor(DType::F32, {3, 5});
    const Tensor sums = s.tensor(DType::F32, {3, 2}), lse = s.tensor(DType::F32, {3});
    const Tensor labels = s.tensor(DType::I32, {3}, {0, label, 4});
    return s.error_of([&](Stream& stream) {
      if (operation == "cross_entropy_sums") {
        cross_entropy_sums(stream, sums, logits, labels, others);
      } else {
        cross_entropy_dgrad(stream, dlogits, logits, lse, labels, 1, others);
      }
    });
  };
  for (const char* operation : {"cross_entropy_sums", "cross_entropy_dgrad"}) {
    EXPECT_EQ(error_of(operation, 4, {}), "none");
    EXPECT_EQ(error_of(operation, -100, {}), "none") << "any negative number is no label";
    EXPECT_EQ(error_of(operation, 5, {}), own_fault(operation, "label 5 of a vocabulary of 5"));
    const OtherIds others{.before = 3, .behind = 2};
    EXPECT_EQ(error_of(operation, 9, others), "none") << "another rank's";
    EXPECT_EQ(error_of(operation, 10, others),
              own_fault(operation, "label 10 of a vocabulary of 10"));
  }
}

INSTANTIATE_TEST_SUITE_P(CrossEntropy,
                         CrossEntropyOn,
                         testing::ValuesIn(devices::all_devices()),
                         device_name);

}  // namespace cross_entropy_test
}  // namespace weft::kernels
