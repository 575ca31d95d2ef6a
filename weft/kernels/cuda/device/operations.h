// Operations of kernels.h on a GPU.
#pragma once

#include "weft/kernels/each_operation.h"

namespace weft::kernels {
struct Operations;
}

namespace weft::kernels::cuda {

WEFT_EACH_OPERATION(WEFT_DECLARE_OPERATION)

const Operations& operations();

}  // namespace weft::kernels::cuda
