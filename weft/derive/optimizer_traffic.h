// What one step of the optimizer moves for each parameter whose state a rank keeps.
#pragma once

#include "weft/config/config.h"

namespace weft::derive {

// Bytes of one parameter.
struct OptimizerTraffic {
  // Read and written by AdamW where the state is on the device. Moments and masters are read and
  // written, gradients read and weights written; those that are masters, or a half of them, are
  // read too.
  double device = 0;
  // The same in the host's memory, where the state is there. The host has master weights whatever
  // the weights are, and makes others of them where those are not fp32.
  double host = 0;
  // Over the link, where the state is on the host: a gradient there, and a weight back.
  double download = 0, upload = 0;
  double gradient = 0;  // as a rank has it
};
OptimizerTraffic optimizer_traffic(const config::Config& config);

// Of gradients between the ranks that sum them, and of weights between those that gather them.
double reduced_bytes(const config::Config& config);
double gathered_bytes(const config::Config& config);

}  // namespace weft::derive
