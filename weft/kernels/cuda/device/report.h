#pragma once

#include "weft/kernels/gpu_report.h"

namespace weft::kernels::cuda {

// Fills in everything but library_loaded. Does not throw.
void report(GpuReport& report);

}  // namespace weft::kernels::cuda
