// Cosines and sines of every position's angles. The host gives the angle from one position to the
// next, per pair. The kernel takes a block of pairs of them as an argument.
#include <algorithm>

#include "weft/kernels/cuda/device/arguments.h"
#include "weft/kernels/cuda/device/operations.h"
#include "weft/kernels/rotary_step.h"

namespace weft::kernels::cuda {
namespace rotary_table_kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kPairsPerLaunch = 256;  // 2 KiB of the 4 KiB for a kernel's arguments

struct Steps {
  std::int64_t first = 0, count = 0;  // pairs
  double of[kPairsPerLaunch] = {};
};

__global__ void write_angles(Matrix<float> table,
                             const __grid_constant__ Steps steps,
                             double magnitude) {
  const std::int64_t half = table.columns / 2;
  for (std::int64_t i = first_index(); i < table.rows * steps.count; i += index_step()) {
    const std::int64_t position = i / steps.count, pair = i % steps.count;
    const double angle = static_cast<double>(position) * steps.of[pair];
    float* cosine = table.row(position) + steps.first + pair;
    cosine[0] = static_cast<float>(magnitude * cos(angle));
    cosine[half] = static_cast<float>(magnitude * sin(angle));
  }
}

Steps steps_from(std::int64_t first, std::int64_t half, const RotaryAngles& angles) {
  Steps steps{.first = first, .count = std::min<std::int64_t>(kPairsPerLaunch, half - first)};
  for (std::int64_t i = 0; i < steps.count; ++i) {
    steps.of[i] = rotary_step(first + i, half, angles);
  }
  return steps;
}

}  // namespace
}  // namespace rotary_table_kernels

void rotary_table(Stream& stream, Tensor table, const RotaryAngles& angles) {
  const Matrix<float> rows = matrix<float>(stream, table);
  const std::int64_t half = rows.columns / 2;
  const double magnitude = angles.yarn ? angles.yarn->magnitude : 1.0;
  enqueue_all(stream, "rotary_table", WorkClass::Memory, [=](cudaStream_t handle) {
    if (rows.rows == 0) return;
    for (std::int64_t first = 0; first < half; first += rotary_table_kernels::kPairsPerLaunch) {
      const rotary_table_kernels::Steps steps =
          rotary_table_kernels::steps_from(first, half, angles);
      const unsigned blocks = blocks_for(rows.rows * steps.count, rotary_table_kernels::kThreads);
      rotary_table_kernels::write_angles<<<blocks, rotary_table_kernels::kThreads, 0, handle>>>(
          rows,
          steps,
          magnitude);
    }
  });
}

}  // namespace weft::kernels::cuda
