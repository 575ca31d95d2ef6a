#include <dnnl.h>
#include <omp.h>

#include <string_view>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/kernels/cpu/onednn.h"
#include "weft/kernels/onednn_report.h"

namespace weft::kernels {
namespace {

using base::text;

// Less than AVX-512 was not measured to gain. What the user allows in DNNL_MAX_CPU_ISA counts.
bool has_avx512() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
}

char onednn_transpose(cpu::Transpose t) { return t == cpu::Transpose::Yes ? 'T' : 'N'; }

std::string_view reason(dnnl_status_t status) {
  return status == dnnl_out_of_memory ? "out of memory" : "failed";
}

}  // namespace

OnednnReport onednn_report() {
  const dnnl_version_t& version = *dnnl_version();
  return {.version = text("{}.{}.{}", version.major, version.minor, version.patch),
          .why_not = has_avx512() ? "" : "oneDNN finds no AVX-512 in this processor"};
}

void cpu::onednn_sgemm(std::int64_t m,
                       std::int64_t n,
                       std::int64_t k,
                       float alpha,
                       const Factor& a,
                       const Factor& b,
                       const Product& c) {
  // OpenMP keeps the number for each thread that calls; oneDNN asks for it and then starts none.
  omp_set_num_threads(1);
  const dnnl_status_t status = dnnl_sgemm(onednn_transpose(a.transpose),
                                          onednn_transpose(b.transpose),
                                          m,
                                          n,
                                          k,
                                          alpha,
                                          a.data,
                                          a.stride,
                                          b.data,
                                          b.stride,
                                          c.beta,
                                          c.data,
                                          c.stride);
  if (status == dnnl_success) return;
  throw base::SystemError(
      text("dnnl_sgemm ({} x {} x {}): {}, status {}", m, n, k, reason(status), int(status)));
}

}  // namespace weft::kernels
