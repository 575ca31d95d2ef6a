// What a device can do at best: the fastest product, copies inside its memory, and the way to the
// host.
#pragma once

#include "weft/measure/device_rate.h"
#include "weft/measure/device_timer.h"

namespace weft::measure {

struct CeilingShapes {
  std::int64_t product = 8192;                        // rows, columns and depth of a bf16 product
  std::int64_t copy_bytes = std::int64_t{2} << 30;    // copied
  std::int64_t link_bytes = std::int64_t{256} << 20;  // of a transfer, pinned
};

struct DeviceCeilings {
  double flops = 0;                           // a second
  double copy = 0;                            // bytes read and written a second
  double fill = 0;                            // bytes written a second where none are read
  double upload = 0, download = 0, both = 0;  // bytes a second, one way; at once, each way
};

DeviceCeilings bench_ceilings(DeviceTimer& timer, const CeilingShapes& shapes);

// Two of them alone: operations a second of a product (rows, k) x (k, n) of random numbers, and
// bytes read and written a second by a copy.
struct ProductSize {
  std::int64_t rows = 0, n = 0, k = 0;
};
double product_rate(DeviceTimer& timer, tensor::DType dtype, const ProductSize& size);
double copy_rate(DeviceTimer& timer, std::int64_t bytes);

}  // namespace weft::measure
