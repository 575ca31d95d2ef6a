// Time of a node by a calibration and its work.
#pragma once

#include "weft/plan/hardware/calibration.h"

namespace weft::plan {

struct NodeSeconds {
  double product = 0, attention = 0, memory = 0;
  double link_call = 0, link_bytes = 0;
  double other = 0;

  // `wire_seconds`: time on emulated links, concurrent with the copies. `untraced`: see
  // MachineRates.
  exec::sim::Cost cost(const schedule::Entry& entry, double wire_seconds, double untraced) const;
};

NodeSeconds node_seconds(const NodeWork& work,
                         schedule::Direction direction,
                         const NodeFactor& factor,
                         const MachineRates& rates);

// Factor of a node's kind or a similar kind; nullopt: the calibrated run had none.
std::optional<NodeFactor> known_factor(const Calibration& calibration, schedule::Node node);

}  // namespace weft::plan
