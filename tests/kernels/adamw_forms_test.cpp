// AdamW with 16-bit state: every form of moments and master weights, on every device.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/devices/devices_support.h"
#include "weft/base/random.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/narrow_numbers.h"
#include "weft/tensor/transfer.h"

namespace weft::kernels {
namespace adamw_forms_test {

using devices::DeviceKind;
using tensor::BFloat16;
using tensor::DType;
using tensor::Float16;
using tensor::Tag;

constexpr std::int64_t kSize = 4501;
constexpr int kSteps = 3;

const AdamW kOptions{.learning_rate = 0.01f,
                     .beta1 = 0.9f,
                     .beta2 = 0.95f,
                     .epsilon = 1e-8f,
                     .weight_decay = 0.1f,
                     .gradient_scale = 0.5f,
                     .undecayed = {{5, 4099}}};

// Magnitudes over many binades, like real gradients.
float gradient_at(int step, std::int64_t i) {
  const double size = std::ldexp(1.0, -static_cast<int>(i % 24));
  return static_cast<float>(
      size * base::normal(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(i)));
}

struct Form {
  DType weights = DType::BF16, master = DType::F32, moment1 = DType::F32, moment2 = DType::F32;
  DType gradient = DType::F32;
};

std::string name_of_form(const Form& form) {
  std::string all;
  for (const DType dtype : {form.weights, form.master, form.moment1, form.moment2}) {
    all += tensor::name_of(dtype);
  }
  return all;
}

// State of a run as numbers.
struct Numbers {
  std::vector<float> weights, masters, moment1, moment2;
};

// Rounded: to bf16.
enum class Gradients { Whole, Rounded };

class FormRun {
 public:
  // `offset`: elements between the start of pool memory and of the state.
  FormRun(const Form& form, DeviceKind device, int threads = 2, std::int64_t offset = 0)
      : bench_(threads, device), form_(form), offset_(offset) {
    std::vector<float> start;
    for (std::int64_t i = 0; i < kSize; ++i) {
      start.push_back(static_cast<float>(base::normal(7, static_cast<std::uint64_t>(i))));
    }
    tensor::write_floats(stream(), weights_, start);
    for (const Tensor& x : {moment1_, moment2_}) zero(stream(), x);
    if (form.master == DType::I16) zero(stream(), master_);
    if (form.master == DType::F16) masters_in_half(stream(), master_, weights_);
    if (form.master == DType::F32 && form.weights == DType::BF16) {
      copy(stream(), master_, weights_);
    }
  }

  void step(int step, Gradients size = Gradients::Whole) {
    std::vector<float> gradients;
    for (std::int64_t i = 0; i < kSize; ++i) gradients.push_back(gradient_at(step, i));
    if (size == Gradients::Rounded) {
      for (float& value : gradients) value = static_cast<float>(BFloat16(value));
    }
    tensor::write_floats(stream(), gradient_, gradients);
    AdamW now = kOptions;
    now.step = step;
    adamw(stream(), weights_, master_, moment1_, moment2_, gradient_, now);
  }

  Numbers numbers() {
    Numbers all{.weights = tensor::read_floats(stream(), weights_),
                .moment1 = moment(moment1_, tensor::moment1_of_half),
                .moment2 = moment(moment2_, tensor::moment2_of_half)};
    if (form_.master == DType::F32) {
      all.masters = tensor::read<float>(stream(), master_);
      return all;
    }
    if (form_.master == DType::F16) {
      all.masters = moment(master_, tensor::master_of_half);
      return all;
    }
    const auto remainders = tensor::read<std::int16_t>(stream(), master_);
    for (std::size_t i = 0; i < remainders.size(); ++i) {
      const BFloat16 upper(all.weights[i]);
      all.masters.push_back(tensor::joined_float(upper.bits, remainders[i]));
    }
    return all;
  }

 private:
  Stream& stream() { return *bench_.stream; }
  Tensor vector(DType dtype, Tag tag) {
    return Tensor(bench_.pool, dtype, {offset_ + kSize}, tag).range(offset_, {kSize});
  }
  std::vector<float> moment(const Tensor& x, float (*of_half)(Float16)) {
    if (x.dtype() != DType::F16) return tensor::read_floats(stream(), x);
    std::vector<float> values;
    for (const Float16 half : tensor::read<Float16>(stream(), x)) values.push_back(of_half(half));
    return values;
  }

  devices::Workbench bench_;
  const Form form_;
  const std::int64_t offset_;
  Tensor weights_ = vector(form_.weights, Tag::Weights);
  Tensor master_ = form_.weights == DType::F32 ? weights_ : vector(form_.master, Tag::Optimizer);
  Tensor moment1_ = vector(form_.moment1, Tag::Optimizer);
  Tensor moment2_ = vector(form_.moment2, Tag::Optimizer);
  Tensor gradient_ = vector(form_.gradient, Tag::Gradients);
};

// Relative rounding error of stored numbers: half of the last digit. The second moment in fp16 is
// stored as its root.
double part_of(DType dtype, double halves) {
  if (dtype == DType::BF16) return 1.001 / 256;
  return dtype == DType::F16 ? 1.001 * halves / 2048 : 1e-6;
}

// One step from the previous state, in double precision.
void expect_step(const Form& form, const Numbers& before, const Numbers& after, int step) {
  const double least = form.moment1 == DType::F16 ? 0x1p-36 : 0;
  for (std::size_t i = 0; i < before.weights.size(); ++i) {
    const double g = 0.5 * double(gradient_at(step, std::int64_t(i)));
    const double b1 = double(0.9f), b2 = double(0.95f);
    const double m = b1 * before.moment1[i] + (1 - b1) * g;
    const double v = b2 * before.moment2[i] + (1 - b2) * g * g;
    const double sizes = b1 * std::abs(before.moment1[i]) + (1 - b1) * std::abs(g);
    const double mean = m / (1 - std::pow(b1, step)), square = v / (1 - std::pow(b2, step));
    const double decay = i >= 5 && i < 4099 ? 0 : double(0.1f);
    const double w =
        before.masters[i] -
        double(0.01f) * (mean / (std::sqrt(square) + double(1e-8f)) + decay * before.masters[i]);
    const double kept = form.master == DType::F16 ? std::abs(w) / 2047 + 0x1p-33 : 0;
    ASSERT_NEAR(after.masters[i], w, 2e-6 + kept) << i;
    ASSERT_NEAR(after.moment1[i], m, part_of(form.moment1, 1) * std::abs(m) + least + 3e-7 * sizes)
        << i;
    ASSERT_NEAR(after.moment2[i], v, part_of(form.moment2, 2) * v + 1e-12) << i;
    ASSERT_NEAR(after.weights[i], w, std::abs(w) / 250 + 2e-6 + kept) << i;
  }
}

struct FormCase {
  Form form;
  DeviceKind device = DeviceKind::Cpu;
};

std::vector<FormCase> form_cases() {
  std::vector<FormCase> all;
  for (const DeviceKind device : devices::all_devices()) {
    for (const DType moment1 : {DType::F32, DType::BF16, DType::F16}) {
      for (const DType moment2 : {DType::F32, DType::BF16, DType::F16}) {
        all.push_back({{DType::F32, DType::F32, moment1, moment2}, device});
        all.push_back({{DType::BF16, DType::F32, moment1, moment2}, device});
        all.push_back({{DType::BF16, DType::I16, moment1, moment2}, device});
        all.push_back({{DType::BF16, DType::F16, moment1, moment2}, device});
      }
    }
  }
  return all;
}

class AdamWForms : public ::testing::TestWithParam<FormCase> {};

INSTANTIATE_TEST_SUITE_P(Forms,
                         AdamWForms,
                         ::testing::ValuesIn(form_cases()),
                         [](const auto& test) {
                           return name_of_form(test.param.form) + "On" +
                                  devices::name_of(test.param.device);
                         });

TEST_P(AdamWForms, EveryStepIsThatOfDoublePrecision) {
  const auto& [form, device] = GetParam();
  FormRun run(form, device);
  Numbers before = run.numbers();
  for (int step = 1; step <= kSteps; ++step) {
    run.step(step);
    const Numbers after = run.numbers();
    expect_step(form, before, after, step);
    before = after;
  }
}

// Alignment of packs and number of threads have no effect.
TEST_P(AdamWForms, NeitherAlignmentNorThreadsChangeABit) {
  const auto& [form, device] = GetParam();
  FormRun aligned(form, device, 1), shifted(form, device, 3, 1);
  for (int step = 1; step <= kSteps; ++step) {
    aligned.step(step);
    shifted.step(step);
  }
  const Numbers a = aligned.numbers(), b = shifted.numbers();
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.masters, b.masters);
  EXPECT_EQ(a.moment1, b.moment1);
  EXPECT_EQ(a.moment2, b.moment2);
}

void expect_nothing_lost(const Form& form, DeviceKind device) {
  Form whole = form;
  whole.master = DType::F32;
  FormRun halves(form, device), wholes(whole, device);
  for (int step = 1; step <= kSteps; ++step) {
    halves.step(step);
    wholes.step(step);
  }
  const Numbers a = halves.numbers(), b = wholes.numbers();
  EXPECT_EQ(a.masters, b.masters);
  EXPECT_EQ(a.moment1, b.moment1);
  EXPECT_EQ(a.moment2, b.moment2);
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    ASSERT_EQ(BFloat16(a.weights[i]).bits, tensor::split_float(b.masters[i]).upper) << i;
  }
}

// A master in two halves equals the fp32 master, bit by bit.
TEST(AdamWRemainders, LoseNothing) {
  for (const DeviceKind device : devices::all_devices()) {
    for (const DType moments : {DType::F32, DType::BF16, DType::F16}) {
      SCOPED_TRACE(devices::name_of(device) + std::string(tensor::name_of(moments)));
      expect_nothing_lost({DType::BF16, DType::I16, moments, moments}, device);
    }
  }
}

// A bf16 gradient acts as the fp32 gradient of equal value.
TEST(AdamWGradients, InBf16AreTheNumbersThatTheyAre) {
  for (const DeviceKind device : devices::all_devices()) {
    for (const std::int64_t offset : {0, 1}) {
      SCOPED_TRACE(devices::name_of(device));
      Form form{DType::BF16, DType::F32, DType::F32, DType::F32, DType::BF16};
      FormRun narrow(form, device, 2, offset);
      form.gradient = DType::F32;
      FormRun wide(form, device, 2, offset);
      for (int step = 1; step <= kSteps; ++step) {
        narrow.step(step);
        wide.step(step, Gradients::Rounded);
      }
      const Numbers a = narrow.numbers(), b = wide.numbers();
      EXPECT_EQ(a.masters, b.masters);
      EXPECT_EQ(a.moment1, b.moment1);
      EXPECT_EQ(a.moment2, b.moment2);
    }
  }
}

// A weight is its rounded fp16 master from the first step on; fp16 clamps large values.
TEST(AdamWHalves, WeightsAreRoundedFromWhatIsKept) {
  for (const DeviceKind device : devices::all_devices()) {
    SCOPED_TRACE(devices::name_of(device));
    FormRun run({DType::BF16, DType::F16, DType::F32, DType::F32}, device);
    const Numbers start = run.numbers();
    EXPECT_EQ(start.weights, start.masters);
    for (int step = 1; step <= kSteps; ++step) run.step(step);
    const Numbers end = run.numbers();
    for (std::size_t i = 0; i < end.weights.size(); ++i) {
      ASSERT_EQ(end.weights[i], static_cast<float>(BFloat16(end.masters[i]))) << i;
    }
  }
  EXPECT_EQ(tensor::master_of_half(tensor::half_of_master(1e6f)), 65504.0f / 256);
  EXPECT_EQ(tensor::master_of_half(tensor::half_of_master(-1e6f)), -65504.0f / 256);
  EXPECT_EQ(tensor::master_of_half(tensor::half_of_master(0x1p-32f)), 0x1p-32f);
}

}  // namespace adamw_forms_test
}  // namespace weft::kernels
