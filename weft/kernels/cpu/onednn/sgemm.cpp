// Within a block of k, an element sums from its first product to its last; blocks are added in
// order. Its bits depend only on k, its row and its column: a product cut otherwise, for other
// overlap, has equal bits. oneDNN sums this way if k fits one of its blocks and m and n are large
// enough. For small m or n, its other kernels sum along k in vectors.
#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/kernels/cpu/onednn.h"
#include "weft/kernels/onednn_report.h"

namespace weft::kernels {
namespace {

using base::text;
using cpu::Factor;
using cpu::Product;
using cpu::Transpose;

constexpr std::int64_t kDeepest = 384;  // largest k of a call: oneDNN's own block
constexpr std::int64_t kLeast = 16;     // smallest m and n

// No gain was measured below AVX-512. The user's DNNL_MAX_CPU_ISA counts.
bool has_avx512() {
  return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
}

char onednn_transpose(Transpose t) { return t == Transpose::Yes ? 'T' : 'N'; }

std::string_view reason(dnnl_status_t status) {
  return status == dnnl_out_of_memory ? "out of memory" : "failed";
}

void call_onednn(std::int64_t m,
                 std::int64_t n,
                 std::int64_t k,
                 float alpha,
                 const Factor& a,
                 const Factor& b,
                 const Product& c) {
  // OpenMP keeps this number per calling thread; oneDNN reads it and starts no threads.
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

// Sums even blocks of k, one call each.
void sum_blocks(std::int64_t m,
                std::int64_t n,
                std::int64_t k,
                float alpha,
                Factor a,
                Factor b,
                Product c) {
  const std::int64_t blocks = (k + kDeepest - 1) / kDeepest;
  const std::int64_t even = ((k + blocks - 1) / blocks + 15) / 16 * 16;
  for (std::int64_t begin = 0; begin < k; begin += even) {
    const std::int64_t depth = std::min(even, k - begin);
    call_onednn(m, n, depth, alpha, a, b, c);
    a.data += a.transpose == Transpose::Yes ? depth * a.stride : depth;
    b.data += b.transpose == Transpose::Yes ? depth : depth * b.stride;
    c.beta = 1;
  }
}

void copy_rows(float* to,
               std::int64_t to_stride,
               const float* from,
               std::int64_t from_stride,
               std::int64_t rows,
               std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i * from_stride, columns, to + i * to_stride);
  }
}

// Matrix padded with zero rows and columns.
class Widened {
 public:
  Widened(const float* from,
          std::int64_t stride,
          std::int64_t rows,
          std::int64_t columns,
          std::int64_t least_rows,
          std::int64_t least_columns)
      : stride_(std::max(columns, least_columns)),
        data_(static_cast<std::size_t>(std::max(rows, least_rows) * stride_)) {
    copy_rows(data(), stride_, from, stride, rows, columns);
  }
  float* data() { return data_.data(); }
  std::int64_t stride() const { return stride_; }

 private:
  std::int64_t stride_;
  std::vector<float> data_;
};

Widened widened_rows(const Factor& a, std::int64_t m, std::int64_t k) {
  if (a.transpose == Transpose::Yes) return {a.data, a.stride, k, m, k, kLeast};
  return {a.data, a.stride, m, k, kLeast, k};
}

Widened widened_columns(const Factor& b, std::int64_t k, std::int64_t n) {
  if (b.transpose == Transpose::Yes) return {b.data, b.stride, n, k, kLeast, k};
  return {b.data, b.stride, k, n, k, kLeast};
}

// Product of few rows or columns, padded with zeros.
void sum_widened(std::int64_t m,
                 std::int64_t n,
                 std::int64_t k,
                 float alpha,
                 const Factor& a,
                 const Factor& b,
                 const Product& c) {
  const bool keeps = c.beta != 0;
  Widened wide(c.data,
               c.stride,
               keeps ? m : 0,
               keeps ? n : 0,
               std::max(m, kLeast),
               std::max(n, kLeast));
  const Product product{wide.data(), wide.stride(), c.beta};
  if (m < kLeast) {
    Widened rows = widened_rows(a, m, k);
    const Factor wide_a{rows.data(), rows.stride(), a.transpose};
    cpu::onednn_sgemm(kLeast, n, k, alpha, wide_a, b, product);
  } else {
    Widened columns = widened_columns(b, k, n);
    const Factor wide_b{columns.data(), columns.stride(), b.transpose};
    cpu::onednn_sgemm(m, kLeast, k, alpha, a, wide_b, product);
  }
  copy_rows(c.data, c.stride, wide.data(), wide.stride(), m, n);
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
  if (m < kLeast || n < kLeast) return sum_widened(m, n, k, alpha, a, b, c);
  sum_blocks(m, n, k, alpha, a, b, c);
}

}  // namespace weft::kernels
