// What the simulator says of an order before it runs: from costs measured in the plain one.
#pragma once

#include <vector>

#include "weft/config/config.h"
#include "weft/grid/fabric.h"
#include "weft/trace/span.h"

namespace weft::cli {

class OverlapPrediction {
 public:
  // `plain` are traced steps of the plain order of `plain_config` on `fabric`, which took
  // `plain_seconds` when nobody looked.
  OverlapPrediction(const config::Config& plain_config,
                    const grid::Fabric& fabric,
                    std::vector<trace::Timeline> plain,
                    double plain_seconds);

  // The step of another order of the same layout: what nodes cost, and what issuing and waking took
  // in the plain step.
  double step_seconds(const config::Config& config) const;
  // The same with nothing but compute and the wire: no order of these nodes on this machine does
  // better in this order.
  double ideal_seconds(const config::Config& config) const;

 private:
  double wake_seconds_ = 0;
  config::Config plain_config_;
  grid::Fabric fabric_;
  std::vector<trace::Timeline> plain_;
};

}  // namespace weft::cli
