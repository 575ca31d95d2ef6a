// Table of a device's operations: one function for each of kernels.h, with the same arguments. A
// function of kernels.h checks its arguments, then calls the entry of the stream's device.
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
