// Duration of one kernel on the device.
#include <algorithm>
#include <cmath>

#include "weft/base/check.h"
#include "weft/plan/cost/kernel_work.h"

namespace weft::plan {
namespace {

using schedule::Direction;

// A multiprocessor computes one tile at a time: all of k, with prologue and epilogue. A partial
// tile costs a whole one. Half of an incomplete last wave is lost, since libraries choose between
// tile shapes.
double product_seconds(const Kernel& kernel, const Hardware& hardware) {
  const double tiles = kernel.groups * std::ceil(kernel.m / hardware.tile_rows) *
                       std::ceil(kernel.n / hardware.tile_columns);
  const double own = hardware.gemm_share[kernel.number];
  const bool is_apart = kernel.is_head && hardware.gemm_share_head > 0;
  const double share = is_apart ? hardware.gemm_share_head : own;
  const double rate =
      hardware.peak(kernel.number) * hardware.sustained_share * share / hardware.sms;
  const double tile = 2 * hardware.tile_rows * hardware.tile_columns * kernel.k / rate +
                      hardware.tile_us * kMicroseconds;
  const double rounds = tiles / hardware.sms;
  return std::max(1.0, (rounds + std::ceil(rounds)) / 2) * tile;
}

double attention_seconds(const Kernel& kernel, const Hardware& hardware) {
  const double share = kernel.direction == Direction::F ? hardware.attention_forward_share
                                                        : hardware.attention_backward_share;
  return kernel.flops / (hardware.peak(kernel.number) * hardware.sustained_share * share);
}

}  // namespace

double device_seconds(const Kernel& kernel, const Hardware& hardware) {
  const double moving = kernel.bytes / hardware.memory_rate();
  double computing = 0;
  switch (kernel.kind) {
    case KernelKind::Product:
      computing = product_seconds(kernel, hardware);
      break;
    case KernelKind::Attention:
      computing = attention_seconds(kernel, hardware);
      break;
    case KernelKind::Memory:
      break;
  }
  return std::max(computing, moving) + hardware.kernel_us * kMicroseconds;
}

}  // namespace weft::plan
