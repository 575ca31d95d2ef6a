// Cosines and sines of every position's angles. YaRN (arXiv:2309.00071) lets fast pairs turn as
// before, slows those that never came round by the factor, and blends between.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/kernels/cpu/work_cut.h"

namespace weft::kernels::cpu {

namespace {

// The pair (not a whole number) that comes round `turns` times over the original positions.
double pair_that_turns(double turns, double pairs, const Yarn& yarn, double base) {
  return pairs * std::log(yarn.original_positions / (turns * 2 * std::numbers::pi)) /
         std::log(base);
}

// How much of pair i is stretched: 0 for the fast ones, 1 for the slow ones.
double stretched(double i, double pairs, const Yarn& yarn, double base) {
  const double low = std::max(0.0, std::floor(pair_that_turns(yarn.beta_fast, pairs, yarn, base)));
  double high =
      std::min(2 * pairs - 1, std::ceil(pair_that_turns(yarn.beta_slow, pairs, yarn, base)));
  if (high == low) high += 0.001;
  return std::clamp((i - low) / (high - low), 0.0, 1.0);
}

// By how much pair i turns from one position to the next.
double step_of(std::int64_t pair, std::int64_t half, const RotaryAngles& angles) {
  const auto i = static_cast<double>(pair), pairs = static_cast<double>(half);
  const double plain = std::pow(angles.base, -i / pairs);
  if (!angles.yarn) return plain;
  const double share = stretched(i, pairs, *angles.yarn, angles.base);
  return plain * (1 - share + share / angles.yarn->factor);
}

}  // namespace

void rotary_table(Stream& stream, Tensor table, const RotaryAngles& angles) {
  const Matrix<float> rows = matrix<float>(stream, table);
  enqueue(stream, "rotary_table", WorkClass::Memory, [=](Workers& workers) {
    const std::int64_t half = rows.columns / 2;
    const double magnitude = angles.yarn ? angles.yarn->magnitude : 1.0;
    parallel(workers, cut_rows(rows.rows, rows.columns), [&](Range range) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double step = step_of(i, half, angles);
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
