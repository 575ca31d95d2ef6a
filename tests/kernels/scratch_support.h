// Device for a test's own tensors, with access to its errors.
#pragma once

#include <functional>
#include <string>

#include "tests/kernels/conformance_support.h"

namespace weft::kernels {

// A stream keeps its first error, so each expected error needs its own scratch.
class Scratch {
 public:
  explicit Scratch(DeviceKind device) : bench_(2, device) {}

  // Tensor in device memory, filled on return; without values all zero.
  Tensor tensor(DType dtype, const Shape& shape, const Values& values);
  Tensor tensor(DType dtype, const Shape& shape) { return filled(dtype, shape, 0); }
  Tensor filled(DType dtype, const Shape& shape, double value);
  // Values of a contiguous tensor, after all work.
  Values read(const Tensor& x);

  // Error of the work, its kind before its text, in the form of the two functions below; "none": no
  // error.
  std::string error_of(const std::function<void(Stream&)>& work);

  Stream& stream() { return *bench_.stream; }
  Pool& pool() { return bench_.pool; }

 private:
  Workbench bench_;
};

// Errors of an operation with bad data: our own data, and data of other ranks.
std::string own_fault(const std::string& operation, const std::string& what);
std::string outside_fault(const std::string& operation, const std::string& what);

std::string device_name(const testing::TestParamInfo<DeviceKind>& info);

}  // namespace weft::kernels
