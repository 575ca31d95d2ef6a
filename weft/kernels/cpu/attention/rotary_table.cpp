// Cosines and sines of the angles of all positions.
#include <cmath>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/rotary_step.h"

namespace weft::kernels::cpu {

void rotary_table(Stream& stream, Tensor table, const RotaryAngles& angles) {
  const Matrix<float> rows = matrix<float>(stream, table);
  enqueue(stream, "rotary_table", WorkClass::Memory, [=](Workers& workers) {
    const std::int64_t half = rows.columns / 2;
    const double magnitude = angles.yarn ? angles.yarn->magnitude : 1.0;
    parallel(workers, cut_rows(rows.rows, rows.columns), [&](Range range) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double step = rotary_step(i, half, angles);
        for (std::int64_t s = range.begin; s < range.end; ++s) {
          const double angle = static_cast<double>(s) * step;
          rows.row(s)[i] = static_cast<float>(magnitude * std::cos(angle));
          rows.row(s)[i + half] = static_cast<float>(magnitude * std::sin(angle));
        }
      }
    });
  });
}

}  // namespace weft::kernels::cpu
