// Conformance table: every operation is compared with double precision on all difficult shapes. An
// operation's file lists its cases with INSTANTIATE_TEST_SUITE_P(Operation, Conformance, ...);
// conformance_test.cpp has the checks.
//
// Gradients are not derived a second time: the expected dgrad or wgrad is a finite difference of
// the double-precision forward.
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
  Values values;  // as the dtype stores them; for an Output: its contents before, if relevant
  Rows rows = Rows::Contiguous;
};

// Expected contents of an argument; for a Sum: the addition by one call.
struct Expected {
  std::size_t argument = 0;
  std::vector<std::size_t> elements;
  Values values;
  double tolerance = 0;  // relative to the largest magnitude
};

struct Case {
  std::string name;  // letters, digits and underscores
  std::vector<Argument> arguments;
  std::function<void(Stream&, Pool&, const std::vector<Tensor>&)> run;
  std::function<std::vector<Expected>(const std::vector<Argument>&)> expect;
};

// Case on a device. Every case runs on all devices; its values are in memory once.
struct DeviceCase {
  std::shared_ptr<const Case> test;
  DeviceKind device = DeviceKind::Cpu;
};
std::vector<DeviceCase> on_devices(std::vector<Case> cases);
// Cases put on devices: the whole table, once the tests run.
const std::vector<std::shared_ptr<const Case>>& all_cases();
// Expected contents of its arguments, computed once for all devices.
const std::vector<Expected>& expected_of(const std::shared_ptr<const Case>& test);
void PrintTo(const DeviceCase& at, std::ostream* out);

class Conformance : public testing::TestWithParam<DeviceCase> {};
std::string case_name(const testing::TestParamInfo<DeviceCase>& info);

// Normal draws; equal seeds give equal values.
Values draw(std::uint64_t seed, const Shape& shape, double deviation = 1);
Values rounded(Values values, DType dtype);

Argument input(std::string name, DType dtype, Shape shape, Values values);
Argument output(std::string name, DType dtype, Shape shape);
Argument sum_into(std::string name, Shape shape);
// Destination of a wgrad; filled with NaN if the wgrad assigns.
Argument weight_gradient(std::string name, Shape shape, Write write);
std::string name_of_wgrad(Write write);
// Variant of an argument that one run places as a block of columns.
Argument strided(Argument argument);

Expected whole(std::size_t argument, Values values, double tolerance);
// Gradient of `loss` at `at`, expected in `argument`: central differences on at most `samples`
// elements.
Expected finite_difference(std::size_t argument,
                           const Values& at,
                           const std::function<double(const Values&)>& loss,
                           double tolerance,
                           std::size_t samples = 24);

// Variant for elements that enter the loss only through their own row of `columns` elements. `loss`
// takes a row's number and values.
Expected finite_difference_by_rows(std::size_t argument,
                                   const Values& at,
                                   std::int64_t columns,
                                   const std::function<double(std::int64_t, const Values&)>& loss,
                                   double tolerance,
                                   std::size_t samples = 24);
// Values of one row.
Values row_of(const Values& values, std::int64_t columns, std::int64_t row);

double dot(const Values& a, const Values& b);
double tolerance_of(DType dtype);  // for a result stored in this dtype
std::string name_of_case(const std::string& prefix, DType dtype, const Shape& shape);

// Unwritten: for tests that read no element.
enum class Start { Written, Unwritten };

// Tensors of a case, in separate device memory.
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
  std::vector<std::byte> bytes(std::size_t argument) const;  // bytes of its rows
  bool surroundings_untouched() const;                       // for strided arguments

 private:
  // Argument in memory; a strided one is a block of columns of `whole`.
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
