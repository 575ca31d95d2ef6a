#include "tests/kernels/conformance_support.h"

#include <cmath>
#include <cstring>
#include <ostream>

#include "weft/base/random.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace {

using tensor::BFloat16;
using tensor::Tag;

constexpr std::int64_t kMargin = 3;     // columns left and right of a strided argument
constexpr double kSentinel = 77;        // what is in them
constexpr double kUnwritten = -123456;  // what an output holds before

void write(std::byte* at, DType dtype, double value) {
  const auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (dtype) {
    case DType::F32:
      return put(static_cast<float>(value));
    case DType::BF16:
      return put(BFloat16(static_cast<float>(value)));
    case DType::F64:
      return put(value);
    case DType::I32:
      return put(static_cast<std::int32_t>(value));
    case DType::I64:
      return put(static_cast<std::int64_t>(value));
  }
}

template <typename T>
T taken(const std::byte* at) {
  T typed;
  std::memcpy(&typed, at, sizeof typed);
  return typed;
}

double read_one(const std::byte* at, DType dtype) {
  switch (dtype) {
    case DType::F32:
      return static_cast<double>(taken<float>(at));
    case DType::BF16:
      return static_cast<double>(static_cast<float>(taken<BFloat16>(at)));
    case DType::F64:
      return taken<double>(at);
    case DType::I32:
      return static_cast<double>(taken<std::int32_t>(at));
    case DType::I64:
      return static_cast<double>(taken<std::int64_t>(at));
  }
  return 0;
}

std::byte* base_of(const Tensor& x) {
  switch (x.dtype()) {
    case DType::F32:
      return reinterpret_cast<std::byte*>(x.host<float>());
    case DType::BF16:
      return reinterpret_cast<std::byte*>(x.host<BFloat16>());
    case DType::F64:
      return reinterpret_cast<std::byte*>(x.host<double>());
    case DType::I32:
      return reinterpret_cast<std::byte*>(x.host<std::int32_t>());
    case DType::I64:
      return reinterpret_cast<std::byte*>(x.host<std::int64_t>());
  }
  return nullptr;
}

// Address of element i in row-major order.
std::byte* element(const Tensor& x, std::int64_t i) {
  const std::int64_t width = x.shape().rank() == 2 ? x.dim(1) : 1;
  const std::int64_t stride = x.shape().rank() == 2 ? x.row_stride() : 1;
  return base_of(x) + (i / width * stride + i % width) * tensor::size_of(x.dtype());
}

void fill(const Tensor& x, const Values& values) {
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    write(element(x, i), x.dtype(), values[static_cast<std::size_t>(i)]);
  }
}

Values initial_values(const Argument& argument) {
  const auto n = static_cast<std::size_t>(argument.shape.elements());
  return argument.role == Role::Output ? Values(n, kUnwritten) : argument.values;
}

}  // namespace

std::string case_name(const testing::TestParamInfo<Case>& info) { return info.param.name; }

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

Values draw(std::uint64_t seed, const Shape& shape, double deviation) {
  Values values(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = deviation * base::normal(seed, i);
  return values;
}

Values rounded(Values values, DType dtype) {
  std::byte element_bytes[8];
  for (double& value : values) {
    write(element_bytes, dtype, value);
    value = read_one(element_bytes, dtype);
  }
  return values;
}

Argument input(std::string name, DType dtype, Shape shape, Values values) {
  return {.name = std::move(name),
          .dtype = dtype,
          .shape = shape,
          .role = Role::Input,
          .values = rounded(std::move(values), dtype)};
}

Argument output(std::string name, DType dtype, Shape shape) {
  return {.name = std::move(name),
          .dtype = dtype,
          .shape = shape,
          .role = Role::Output,
          .values = {}};
}

Argument sum_into(std::string name, Shape shape) {
  return {.name = std::move(name),
          .dtype = DType::F32,
          .shape = shape,
          .role = Role::Sum,
          .values = rounded(draw(99, shape), DType::F32)};
}

Argument strided(Argument argument) {
  argument.rows = Rows::MayBeStrided;
  return argument;
}

Expected whole(std::size_t argument, Values values, double tolerance) {
  std::vector<std::size_t> elements(values.size());
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = i;
  return {argument, std::move(elements), std::move(values), tolerance};
}

Expected finite_difference(std::size_t argument,
                           const Values& at,
                           const std::function<double(const Values&)>& loss,
                           double tolerance,
                           std::size_t samples) {
  constexpr double kStep = 1e-4;
  Expected expected{argument, {}, {}, tolerance};
  const std::size_t n = at.size();
  for (std::size_t i = 0; i < std::min(n, samples); ++i) {
    const std::size_t e = n <= samples ? i : base::permute(5, i, n);
    Values moved = at;
    moved[e] = at[e] + kStep;
    const double above = loss(moved);
    moved[e] = at[e] - kStep;
    const double below = loss(moved);
    expected.elements.push_back(e);
    expected.values.push_back((above - below) / (2 * kStep));
  }
  return expected;
}

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double tolerance_of(DType dtype) { return dtype == DType::BF16 ? 5e-3 : 3e-6; }

std::string name_of_case(const std::string& prefix, DType dtype, const Shape& shape) {
  return base::text("{}_{}_{}", prefix, tensor::name_of(dtype), fmt::join(shape.dims(), "x"));
}

Arena::Arena(const Case& test, int threads, Rows rows)
    : test_(test), stream_(tensor::make_cpu_stream("test", threads, tensor::StreamMode::Threaded)) {
  for (const Argument& argument : test.arguments) {
    const bool wide = rows == Rows::MayBeStrided && argument.rows == Rows::MayBeStrided;
    Tensor x;
    if (wide) {
      const Shape shape{argument.shape[0], argument.shape[1] + 2 * kMargin};
      wide_.emplace_back(pool_, argument.dtype, shape, Tag::Activations);
      fill(wide_.back(), Values(static_cast<std::size_t>(shape.elements()), kSentinel));
      x = wide_.back().columns(kMargin, argument.shape[1]);
    } else {
      x = Tensor(pool_, argument.dtype, argument.shape, Tag::Activations);
    }
    fill(x, initial_values(argument));
    tensors_.push_back(x);
  }
}

void Arena::run() {
  test_.run(*stream_, pool_, tensors_);
  stream_->synchronize();
}

Values Arena::read(std::size_t argument) const {
  const Tensor& x = tensors_[argument];
  Values values;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    values.push_back(read_one(element(x, i), x.dtype()));
  }
  return values;
}

std::vector<std::byte> Arena::bytes(std::size_t argument) const {
  const Tensor& x = tensors_[argument];
  const std::int64_t size = tensor::size_of(x.dtype());
  std::vector<std::byte> copied;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::byte* at = element(x, i);
    copied.insert(copied.end(), at, at + size);
  }
  return copied;
}

bool Arena::surroundings_untouched() const {
  for (const Tensor& x : wide_) {
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      const std::int64_t column = i % x.dim(1);
      const bool inside = column >= kMargin && column < x.dim(1) - kMargin;
      if (!inside && read_one(element(x, i), x.dtype()) != kSentinel) return false;
    }
  }
  return true;
}

}  // namespace weft::kernels
