// Whether oneDNN or OpenBLAS computes the products of the CPU device.
#pragma once

#include <string>

namespace weft::kernels {

struct OnednnReport {
  std::string version;  // "2.6.3"; empty where Weft was built without it
  std::string why_not;  // why OpenBLAS computes the products; empty where oneDNN does
};

// The same throughout a process: decided by what the processor has.
OnednnReport onednn_report();

}  // namespace weft::kernels
