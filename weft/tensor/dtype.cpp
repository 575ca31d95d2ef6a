#include "weft/tensor/dtype.h"

#include "weft/base/check.h"

namespace weft::tensor {

std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::I32:
      return 4;
    case DType::BF16:
    case DType::F16:
    case DType::I16:
      return 2;
    case DType::F64:
    case DType::I64:
      return 8;
  }
  UNREACHABLE("dtype {}", static_cast<int>(dtype));
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return "fp32";
    case DType::BF16:
      return "bf16";
    case DType::F16:
      return "fp16";
    case DType::F64:
      return "fp64";
    case DType::I16:
      return "int16";
    case DType::I32:
      return "int32";
    case DType::I64:
      return "int64";
  }
  UNREACHABLE("dtype {}", static_cast<int>(dtype));
}

}  // namespace weft::tensor
