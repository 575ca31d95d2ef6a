#include "weft/kernels/cuda/device/arguments.h"

namespace weft::kernels::cuda {

std::byte* bytes_of(Stream& stream, const Tensor& x) {
  switch (x.dtype()) {
    case DType::F32:
      return reinterpret_cast<std::byte*>(x.data<float>(stream));
    case DType::F64:
      return reinterpret_cast<std::byte*>(x.data<double>(stream));
    case DType::BF16:
      return reinterpret_cast<std::byte*>(x.data<tensor::BFloat16>(stream));
    case DType::F16:
      return reinterpret_cast<std::byte*>(x.data<tensor::Float16>(stream));
    case DType::I16:
      return reinterpret_cast<std::byte*>(x.data<std::int16_t>(stream));
    case DType::I32:
      return reinterpret_cast<std::byte*>(x.data<std::int32_t>(stream));
    case DType::I64:
      return reinterpret_cast<std::byte*>(x.data<std::int64_t>(stream));
  }
  UNREACHABLE("a dtype");
}

}  // namespace weft::kernels::cuda
