// Ceilings of a device: the fastest matrix product, copies inside its memory, transfers to and from
// the host.
#pragma once

#include "weft/measure/device/device_rate.h"
#include "weft/measure/device/device_timer.h"

namespace weft::measure {

struct CeilingShapes {
  std::int64_t product = 8192;                        // rows, columns and depth of a bf16 product
  std::int64_t copy_bytes = std::int64_t{2} << 30;    // bytes of a copy
  std::int64_t link_bytes = std::int64_t{256} << 20;  // bytes of a pinned transfer
};

struct DeviceCeilings {
  double flops = 0;  // per second
  double copy = 0;   // bytes read and written per second
  double fill = 0;   // bytes written per second without reads
  // Bytes per second in one direction; `both`: at once, per direction.
  double upload = 0, download = 0, both = 0;
};

DeviceCeilings bench_ceilings(DeviceTimer& timer, const CeilingShapes& shapes);

// Single ceilings: FLOP/s of a product (rows, k) x (k, n) of random numbers, and bytes read and
// written per second by a copy.
struct ProductSize {
  std::int64_t rows = 0, n = 0, k = 0;
};
double product_rate(DeviceTimer& timer, tensor::DType dtype, const ProductSize& size);
double copy_rate(DeviceTimer& timer, std::int64_t bytes);

}  // namespace weft::measure
