// Which device runs an operation: its device's table has a function for each one of kernels.h, with
// the same arguments. The functions of kernels.h check what holds on every device, then call the
// one that the stream's device has.
#pragma once

#include "weft/kernels/each_operation.h"
#include "weft/tensor/stream.h"

namespace weft::kernels {

#define WEFT_OPERATION_MEMBER(name) decltype(&::weft::kernels::name) name;

struct Operations {
  WEFT_EACH_OPERATION(WEFT_OPERATION_MEMBER)
};

#undef WEFT_OPERATION_MEMBER

inline const Operations& operations_of(const Stream& stream) {
  return stream.device().operations();
}

}  // namespace weft::kernels
