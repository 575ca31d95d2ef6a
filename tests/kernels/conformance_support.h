// The conformance table: every operation is held against double precision on every shape that
// could hurt it. An operation's file names its cases with INSTANTIATE_TEST_SUITE_P(Operation,
// Conformance, ...); what is checked of each is in conformance_test.cpp.
//
// Gradients are never derived twice: what a dgrad or wgrad should be is a finite difference of the
// double-precision forward.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/devices/devices_support.h"
#include "weft/kernels/kernels.h"
#include "weft/tensor/tensor.h"

namespace weft::kernels {

using devices::DeviceKind;
using devices::Workbench;
using tensor::DType;
using tensor::Shape;

using Values = std::vector<double>;

enum class Role { Input, Output, Sum };  // Sum: the operation accumulates into it
enum class Rows { Contiguous, MayBeStrided };

struct Argument {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  Role role = Role::Input;
  Values values;  // as the dtype holds them; of an Output: before, where it matters
  Rows rows = Rows::Contiguous;
};

// What an argument should be afterwards (for a Sum: what one call adds to it).
struct Expected {
  std::size_t argument = 0;
  std::vector<std::size_t> elements;
  Values values;
  double tolerance = 0;  // of the largest magnitude
};

struct Case {
  std::string name;  // letters, digits and underscores
  std::vector<Argument> arguments;
  std::function<void(Stream&, Pool&, const std::vector<Tensor>&)> run;
  std::function<std::vector<Expected>(const std::vector<Argument>&)> expect;
};

// A case on a device; every case runs on all of them, and its values are in memory once.
struct DeviceCase {
  std::shared_ptr<const Case> test;
  DeviceKind device = DeviceKind::Cpu;
};
std::vector<DeviceCase> on_devices(std::vector<Case> cases);
// Every case that was put on devices: the whole table, once the tests run.
const std::vector<std::shared_ptr<const Case>>& all_cases();
// What its arguments should be afterwards, computed once for all devices.
const std::vector<Expected>& expected_of(const std::shared_ptr<const Case>& test);
void PrintTo(const DeviceCase& at, std::ostream* out);

class Conformance : public testing::TestWithParam<DeviceCase> {};
std::string case_name(const testing::TestParamInfo<DeviceCase>& info);

// Normal draws, the same for the same seed.
Values draw(std::uint64_t seed, const Shape& shape, double deviation = 1);
Values rounded(Values values, DType dtype);

Argument input(std::string name, DType dtype, Shape shape, Values values);
Argument output(std::string name, DType dtype, Shape shape);
Argument sum_into(std::string name, Shape shape);
// What a wgrad writes; where it assigns, it finds what is not a number.
Argument weight_gradient(std::string name, Shape shape, Write write);
std::string name_of_wgrad(Write write);
// The same argument, a block of columns in one of the runs.
Argument strided(Argument argument);

Expected whole(std::size_t argument, Values values, double tolerance);
// The gradient of `loss` at `at`, expected in `argument`: central differences on at most `samples`
// of its elements.
Expected finite_difference(std::size_t argument,
                           const Values& at,
                           const std::function<double(const Values&)>& loss,
                           double tolerance,
                           std::size_t samples = 24);

// The same where an element enters the loss only through what becomes of its own row of `columns`
// elements: `loss` is of the row of that number, with these values.
Expected finite_difference_by_rows(std::size_t argument,
                                   const Values& at,
                                   std::int64_t columns,
                                   const std::function<double(std::int64_t, const Values&)>& loss,
                                   double tolerance,
                                   std::size_t samples = 24);
// The values of one row.
Values row_of(const Values& values, std::int64_t columns, std::int64_t row);

double dot(const Values& a, const Values& b);
double tolerance_of(DType dtype);  // of a result that is stored so
std::string name_of_case(const std::string& prefix, DType dtype, const Shape& shape);

// Unwritten: for what looks at no element.
enum class Start { Written, Unwritten };

// Tensors of a case, in device memory of their own.
class Arena {
 public:
  Arena(const DeviceCase& at, int threads, Rows rows);
  Arena(const Case& test,
        std::unique_ptr<tensor::Device> device,
        Rows rows,
        Start start = Start::Written);
  void run();
  const std::vector<Tensor>& tensors() const { return tensors_; }
  Values read(std::size_t argument) const;
  std::vector<std::byte> bytes(std::size_t argument) const;  // of its rows
  bool surroundings_untouched() const;                       // of strided arguments

 private:
  // An argument in memory: a strided one is a block of columns of `whole`.
  struct Placed {
    Tensor whole;  // contiguous
    std::int64_t margin = 0;
  };
  void fill(const Placed& placed, const Values& values);
  std::vector<std::byte> contents(const Placed& placed) const;

  const Case& test_;
  std::unique_ptr<tensor::Device> device_;
  Pool pool_;
  std::unique_ptr<Stream> stream_;
  std::vector<Tensor> tensors_;
  std::vector<Placed> placed_;
};

}  // namespace weft::kernels
