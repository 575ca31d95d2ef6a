// CPU implementation of kernels.h: the specification of every other device.
#pragma once

#include "weft/kernels/operations.h"

namespace weft::kernels::cpu {

WEFT_EACH_OPERATION(WEFT_DECLARE_OPERATION)

const Operations& operations();

}  // namespace weft::kernels::cpu
