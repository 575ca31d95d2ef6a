// Operations that do nothing but take the workspace that the real ones take. The few whose results
// tell the host how much memory comes next do their work: a router chooses as it is told to, and
// its choice is counted.
#pragma once

#include "weft/kernels/device.h"
#include "weft/kernels/operations.h"

namespace weft::kernels::cpu {

// With the workspace of the CPU's operations, or that of a GPU's as far as it is known without one.
const Operations& dry_operations(DryRouting routing);
const Operations& dry_gpu_operations(tensor::Deterministic deterministic, DryRouting routing);

}  // namespace weft::kernels::cpu
