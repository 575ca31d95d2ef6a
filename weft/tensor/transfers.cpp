#include "weft/tensor/transfers.h"

#include "weft/base/check.h"

namespace weft::tensor {

void check_reducible(DType dtype) {
  CHECK(dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F64 || dtype == DType::I64,
        "reductions take fp32, bf16, fp64 and int64, not {}",
        name_of(dtype));
}

}  // namespace weft::tensor
