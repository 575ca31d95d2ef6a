#include "weft/kernels/cpu/arguments.h"

namespace weft::kernels::cpu {

std::byte* bytes_of(Stream& stream, const Tensor& x) {
  switch (x.dtype()) {
    case DType::F32:
      return reinterpret_cast<std::byte*>(data<float>(stream, x));
    case DType::BF16:
      return reinterpret_cast<std::byte*>(data<BFloat16>(stream, x));
    case DType::F16:
      return reinterpret_cast<std::byte*>(data<tensor::Float16>(stream, x));
    case DType::I16:
      return reinterpret_cast<std::byte*>(data<std::int16_t>(stream, x));
    case DType::F64:
      return reinterpret_cast<std::byte*>(data<double>(stream, x));
    case DType::I32:
      return reinterpret_cast<std::byte*>(data<std::int32_t>(stream, x));
    case DType::I64:
      return reinterpret_cast<std::byte*>(data<std::int64_t>(stream, x));
  }
  UNREACHABLE("dtype {}", static_cast<int>(x.dtype()));
}

}  // namespace weft::kernels::cpu
