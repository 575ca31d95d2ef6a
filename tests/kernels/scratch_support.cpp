#include "tests/kernels/scratch_support.h"

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/tensor/transfer.h"

namespace weft::kernels {
namespace {

// Calls body with a value of the type that holds an element.
template <typename Body>
void with_element(DType dtype, const Body& body) {
  if (dtype == DType::F32) return body(float{});
  if (dtype == DType::BF16) return body(tensor::BFloat16{});
  if (dtype == DType::F64) return body(double{});
  if (dtype == DType::I32) return body(std::int32_t{});
  if (dtype == DType::I64) return body(std::int64_t{});
  UNREACHABLE("a scratch tensor of {}", tensor::name_of(dtype));
}

template <typename T>
T element_of(double value) {
  if constexpr (std::is_same_v<T, tensor::BFloat16>) {
    return tensor::BFloat16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
double value_of(T element) {
  if constexpr (std::is_same_v<T, tensor::BFloat16>) {
    return static_cast<double>(static_cast<float>(element));
  } else {
    return static_cast<double>(element);
  }
}

}  // namespace

Tensor Scratch::tensor(DType dtype, const Shape& shape, const Values& values) {
  const Tensor x(pool(), dtype, shape, tensor::Tag::Activations);
  with_element(dtype, [&]<typename T>(T) {
    std::vector<T> elements;
    for (const double value : values) elements.push_back(element_of<T>(value));
    tensor::write<T>(stream(), x, elements);
  });
  return x;
}

Tensor Scratch::filled(DType dtype, const Shape& shape, double value) {
  return tensor(dtype, shape, Values(static_cast<std::size_t>(shape.elements()), value));
}

Values Scratch::read(const Tensor& x) {
  Values values;
  with_element(x.dtype(), [&]<typename T>(T) {
    for (const T element : tensor::read<T>(stream(), x)) values.push_back(value_of(element));
  });
  return values;
}

std::string Scratch::error_of(const std::function<void(Stream&)>& work) {
  try {
    work(stream());
    stream().synchronize();
  } catch (const base::SystemError& error) {
    return base::text("SystemError: {}", error.what());
  } catch (const base::InternalError& error) {
    return base::text("InternalError: {}", error.what());
  }
  return "none";
}

std::string own_fault(const std::string& operation, const std::string& what) {
  return base::text("InternalError: {}: CHECK failed on the device: {}", operation, what);
}

std::string outside_fault(const std::string& operation, const std::string& what) {
  return base::text("SystemError: {}: {}", operation, what);
}

std::string device_name(const testing::TestParamInfo<DeviceKind>& info) {
  return devices::name_of(info.param);
}

}  // namespace weft::kernels
