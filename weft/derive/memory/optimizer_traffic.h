// Bytes that an optimizer step moves, per parameter with state on the rank.
#pragma once

#include "weft/config/config.h"

namespace weft::derive {

// Bytes per parameter.
struct OptimizerTraffic {
  // Reads and writes of AdamW with state on the device. Moments and masters are read and written,
  // gradients read, weights written. Weights that are masters, or half of them, are also read.
  double device = 0;
  // Reads and writes in host memory, with state there. The host always has master weights; unless
  // weights are fp32, it also writes converted weights.
  double host = 0;
  // Transfers with state on the host: gradients down, weights up.
  double download = 0, upload = 0;
  double gradient = 0;  // as stored on a rank
};
OptimizerTraffic optimizer_traffic(const config::Config& config);

// Bytes per parameter of gradients between ranks that sum them, and of weights between ranks that
// gather them.
double reduced_bytes(const config::Config& config);
double gathered_bytes(const config::Config& config);

}  // namespace weft::derive
