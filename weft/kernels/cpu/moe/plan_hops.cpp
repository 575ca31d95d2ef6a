// Row splits of the two hops, from the counts of all ranks.
#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/hop_counts.h"

namespace weft::kernels::cpu {

void plan_hops(Stream& stream, Tensor splits, Tensor overflow, Tensor counts, const Hops& hops) {
  const Matrix<std::int64_t> table = matrix<std::int64_t>(stream, counts);
  const HopCounts read{.counts = table.data, .stride = table.stride, .hops = hops};
  std::int64_t* out = data<std::int64_t>(stream, splits);
  double* flag = hops.budget > 0 ? data<double>(stream, overflow) : nullptr;
  const Faults faults(stream);
  enqueue(stream, "plan_hops", WorkClass::Memory, [=](Workers&) {
    if (const std::optional<tensor::Fault> fault = read.fault()) {
      faults.raise(*fault);
    } else if (!read.split(out)) {
      *flag += 1;
    }
  });
}

void sum_counts(Stream& stream, Tensor rows, Tensor counts, std::int64_t first) {
  const std::int64_t local = rows.dim(0);
  const Matrix<std::int64_t> table = matrix<std::int64_t>(stream, counts);
  std::int64_t* out = data<std::int64_t>(stream, rows);
  enqueue(stream, "sum_counts", WorkClass::Memory, [=](Workers&) {
    std::fill_n(out, local, 0);
    for (std::int64_t g = 0; g < table.rows; ++g) {
      for (std::int64_t l = 0; l < local; ++l) out[l] += table.row(g)[first + l];
    }
  });
}

}  // namespace weft::kernels::cpu
