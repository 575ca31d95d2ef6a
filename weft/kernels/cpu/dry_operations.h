// Dry operations: they only take the workspace of the real ones. A few compute their results,
// because those results tell the host how much memory comes next: a router's choice and its counts.
#pragma once

#include "weft/kernels/device.h"
#include "weft/kernels/operations.h"

namespace weft::kernels::cpu {

// Workspace of the CPU's operations, or of a GPU's as far as it is known without a GPU.
const Operations& dry_operations(DryRouting routing);
const Operations& dry_gpu_operations(tensor::Deterministic deterministic, DryRouting routing);

}  // namespace weft::kernels::cpu
