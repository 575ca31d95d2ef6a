#include "weft/base/check.h"
#include "weft/kernels/cpu/onednn.h"
#include "weft/kernels/onednn_report.h"

namespace weft::kernels {

OnednnReport onednn_report() { return {.why_not = "this build has no oneDNN"}; }

void cpu::onednn_sgemm(std::int64_t,
                       std::int64_t,
                       std::int64_t,
                       float,
                       const Factor&,
                       const Factor&,
                       const Product&) {
  UNREACHABLE("this build has no oneDNN");
}

}  // namespace weft::kernels
