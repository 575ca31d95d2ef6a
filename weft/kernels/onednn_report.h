// Library that computes the CPU device's products: oneDNN or OpenBLAS.
#pragma once

#include <string>

namespace weft::kernels {

struct OnednnReport {
  std::string version;  // "2.6.3"; empty: built without oneDNN
  std::string why_not;  // why OpenBLAS is used; empty: oneDNN is
};

// Constant during a process: the processor's features decide.
OnednnReport onednn_report();

}  // namespace weft::kernels
