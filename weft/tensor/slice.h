// Slices (base/slice.h), named again for tensors.
#pragma once

#include "weft/base/slice.h"
#include "weft/tensor/tensor.h"

namespace weft::tensor {

using base::common;
using base::Range;
using base::Run;
using base::runs_in;
using base::runs_of;
using base::Slice;
using base::slice_of;
using base::whole_slice;

}  // namespace weft::tensor
