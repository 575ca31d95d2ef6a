#include "tests/kernels/conformance_support.h"

#include <cmath>
#include <cstring>
#include <map>
#include <ostream>

#include "weft/base/random.h"
#include "weft/base/text.h"

namespace weft::kernels {
namespace {

using tensor::BFloat16;
using tensor::Tag;

constexpr std::int64_t kMargin = 3;     // columns left and right of a strided argument
constexpr double kSentinel = 77;        // contents of these columns
constexpr double kUnwritten = -123456;  // initial contents of an output

void write(std::byte* at, DType dtype, double value) {
  const auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  if (dtype == DType::F32) return put(static_cast<float>(value));
  if (dtype == DType::BF16) return put(BFloat16(static_cast<float>(value)));
  if (dtype == DType::F64) return put(value);
  if (dtype == DType::I16) return put(static_cast<std::int16_t>(value));
  if (dtype == DType::I32) return put(static_cast<std::int32_t>(value));
  if (dtype == DType::I64) return put(static_cast<std::int64_t>(value));
}

template <typename T>
T taken(const std::byte* at) {
  T typed;
  std::memcpy(&typed, at, sizeof typed);
  return typed;
}

double read_one(const std::byte* at, DType dtype) {
  if (dtype == DType::F32) return static_cast<double>(taken<float>(at));
  if (dtype == DType::BF16) return static_cast<double>(static_cast<float>(taken<BFloat16>(at)));
  if (dtype == DType::F64) return taken<double>(at);
  if (dtype == DType::I16) return static_cast<double>(taken<std::int16_t>(at));
  if (dtype == DType::I32) return static_cast<double>(taken<std::int32_t>(at));
  if (dtype == DType::I64) return static_cast<double>(taken<std::int64_t>(at));
  return 0;
}

// True for elements outside the margins left and right.
bool is_inside(const Tensor& x, std::int64_t margin, std::int64_t element) {
  if (margin == 0) return true;
  const std::int64_t column = element % x.dim(1);
  return column >= margin && column < x.dim(1) - margin;
}

Values initial_values(const Argument& argument) {
  const auto n = static_cast<std::size_t>(argument.shape.elements());
  const bool any = argument.role == Role::Output && argument.values.empty();
  return any ? Values(n, kUnwritten) : argument.values;
}

// Sampled elements of n.
std::vector<std::size_t> sampled(std::size_t n, std::size_t samples) {
  std::vector<std::size_t> elements;
  for (std::size_t i = 0; i < std::min(n, samples); ++i) {
    elements.push_back(n <= samples ? i : base::permute(5, i, n));
  }
  return elements;
}

// Central difference of the loss by one value; restores the values.
template <typename Loss>
double slope(Values& values, std::size_t element, const Loss& loss) {
  constexpr double kStep = 1e-4;
  const double at = values[element];
  values[element] = at + kStep;
  const double above = loss();
  values[element] = at - kStep;
  const double below = loss();
  values[element] = at;
  return (above - below) / (2 * kStep);
}

std::vector<std::shared_ptr<const Case>>& table() {
  static std::vector<std::shared_ptr<const Case>> cases;
  return cases;
}

}  // namespace

const std::vector<std::shared_ptr<const Case>>& all_cases() { return table(); }

std::vector<DeviceCase> on_devices(std::vector<Case> cases) {
  std::vector<std::shared_ptr<const Case>> shared;
  for (Case& test : cases) shared.push_back(std::make_shared<const Case>(std::move(test)));
  table().insert(table().end(), shared.begin(), shared.end());
  std::vector<DeviceCase> all;
  for (const DeviceKind device : devices::all_devices()) {
    for (const auto& test : shared) all.push_back({test, device});
  }
  return all;
}

const std::vector<Expected>& expected_of(const std::shared_ptr<const Case>& test) {
  static std::map<std::shared_ptr<const Case>, std::vector<Expected>> all;
  const auto found = all.find(test);
  if (found != all.end()) return found->second;
  return all.emplace(test, test->expect(test->arguments)).first->second;
}

std::string case_name(const testing::TestParamInfo<DeviceCase>& info) {
  return base::text("{}_{}", info.param.test->name, devices::name_of(info.param.device));
}

void PrintTo(const DeviceCase& at, std::ostream* out) { *out << at.test->name; }

Values draw(std::uint64_t seed, const Shape& shape, double deviation) {
  static std::map<std::uint64_t, Values> drawn;  // by seed: longest so far
  Values& known = drawn[seed];
  const auto n = static_cast<std::size_t>(shape.elements());
  while (known.size() < n) known.push_back(base::normal(seed, known.size()));
  Values values(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(n));
  for (double& value : values) value *= deviation;
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

Argument weight_gradient(std::string name, Shape shape, Write write) {
  if (write == Write::Accumulate) return sum_into(std::move(name), shape);
  Argument argument = output(std::move(name), DType::F32, shape);
  argument.values.assign(static_cast<std::size_t>(shape.elements()), std::nan(""));
  return argument;
}

std::string name_of_wgrad(Write write) {
  return write == Write::Assign ? "wgrad_assigned" : "wgrad";
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
  Expected expected{argument, {}, {}, tolerance};
  Values moved = at;
  for (const std::size_t e : sampled(at.size(), samples)) {
    expected.elements.push_back(e);
    expected.values.push_back(slope(moved, e, [&] { return loss(moved); }));
  }
  return expected;
}

Expected finite_difference_by_rows(std::size_t argument,
                                   const Values& at,
                                   std::int64_t columns,
                                   const std::function<double(std::int64_t, const Values&)>& loss,
                                   double tolerance,
                                   std::size_t samples) {
  Expected expected{argument, {}, {}, tolerance};
  const auto n = static_cast<std::size_t>(columns);
  for (const std::size_t e : sampled(at.size(), samples)) {
    const auto row = static_cast<std::int64_t>(e / n);
    Values moved = row_of(at, columns, row);
    expected.elements.push_back(e);
    expected.values.push_back(slope(moved, e % n, [&] { return loss(row, moved); }));
  }
  return expected;
}

Values row_of(const Values& values, std::int64_t columns, std::int64_t row) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * columns);
  return Values(begin, begin + static_cast<std::ptrdiff_t>(columns));
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

Arena::Arena(const DeviceCase& at, int threads, Rows rows)
    : Arena(*at.test, devices::make_device(at.device, threads), rows) {}

Arena::Arena(const Case& test, std::unique_ptr<tensor::Device> device, Rows rows, Start start)
    : test_(test),
      device_(std::move(device)),
      pool_(*device_),
      stream_(device_->make_stream("test", tensor::StreamRole::Compute)) {
  for (const Argument& argument : test_.arguments) {
    const bool wide = rows == Rows::MayBeStrided && argument.rows == Rows::MayBeStrided;
    Placed placed{.whole = {}, .margin = wide ? kMargin : 0};
    Shape shape = argument.shape;
    if (wide) shape = Shape{shape[0], shape[1] + 2 * kMargin};
    placed.whole = Tensor(pool_, argument.dtype, shape, Tag::Activations);
    if (start == Start::Written) fill(placed, initial_values(argument));
    tensors_.push_back(wide ? placed.whole.columns(kMargin, argument.shape[1]) : placed.whole);
    placed_.push_back(std::move(placed));
  }
}

void Arena::run() {
  test_.run(*stream_, pool_, tensors_);
  stream_->synchronize();
}

// Writes the values into the rows, and the sentinel beside them.
void Arena::fill(const Placed& placed, const Values& values) {
  const Tensor& x = placed.whole;
  const std::int64_t size = tensor::size_of(x.dtype());
  std::vector<std::byte> bytes(static_cast<std::size_t>(x.bytes()));
  std::size_t next = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    write(bytes.data() + i * size,
          x.dtype(),
          is_inside(x, placed.margin, i) ? values[next++] : kSentinel);
  }
  stream_->upload(x.raw(*stream_), bytes.data(), x.bytes());
  stream_->synchronize();
}

std::vector<std::byte> Arena::contents(const Placed& placed) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(placed.whole.bytes()));
  stream_->download(bytes.data(), placed.whole.raw(*stream_), placed.whole.bytes());
  stream_->synchronize();
  return bytes;
}

std::vector<std::byte> Arena::bytes(std::size_t argument) const {
  const Placed& placed = placed_[argument];
  const std::int64_t size = tensor::size_of(placed.whole.dtype());
  std::vector<std::byte> all = contents(placed);
  if (placed.margin == 0) return all;
  std::vector<std::byte> copied;
  for (std::int64_t i = 0; i < placed.whole.elements(); ++i) {
    if (!is_inside(placed.whole, placed.margin, i)) continue;
    copied.insert(copied.end(), all.begin() + i * size, all.begin() + (i + 1) * size);
  }
  return copied;
}

Values Arena::read(std::size_t argument) const {
  const DType dtype = tensors_[argument].dtype();
  const std::vector<std::byte> all = bytes(argument);
  Values values;
  values.reserve(all.size() / static_cast<std::size_t>(tensor::size_of(dtype)));
  for (std::size_t at = 0; at < all.size();
       at += static_cast<std::size_t>(tensor::size_of(dtype))) {
    values.push_back(read_one(all.data() + at, dtype));
  }
  return values;
}

bool Arena::surroundings_untouched() const {
  for (const Placed& placed : placed_) {
    if (placed.margin == 0) continue;
    const Tensor& x = placed.whole;
    const std::vector<std::byte> all = contents(placed);
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      if (is_inside(x, placed.margin, i)) continue;
      if (read_one(all.data() + i * tensor::size_of(x.dtype()), x.dtype()) != kSentinel) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace weft::kernels
