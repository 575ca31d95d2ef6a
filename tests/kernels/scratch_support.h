// A device on which a test makes tensors of its own, and what the device finds wrong with them.
#pragma once

#include <functional>
#include <string>

#include "tests/kernels/conformance_support.h"

namespace weft::kernels {

// A stream keeps its first error: each error that is looked for has a scratch of its own.
class Scratch {
 public:
  explicit Scratch(DeviceKind device) : bench_(2, device) {}

  // In memory of the device, which holds the values when this returns; all zero where there are
  // none.
  Tensor tensor(DType dtype, const Shape& shape, const Values& values);
  Tensor tensor(DType dtype, const Shape& shape) { return filled(dtype, shape, 0); }
  Tensor filled(DType dtype, const Shape& shape, double value);
  // Of a contiguous tensor, after all work.
  Values read(const Tensor& x);

  // How the work failed, its kind before its text, as the two functions below write it; "none"
  // where it did not fail.
  std::string error_of(const std::function<void(Stream&)>& work);

  Stream& stream() { return *bench_.stream; }
  Pool& pool() { return bench_.pool; }

 private:
  Workbench bench_;
};

// Errors of an operation that found data wrong: our own, and what came from other ranks.
std::string own_fault(const std::string& operation, const std::string& what);
std::string outside_fault(const std::string& operation, const std::string& what);

std::string device_name(const testing::TestParamInfo<DeviceKind>& info);

}  // namespace weft::kernels
