// What a machine's nodes take beside what they would take by operations and bytes alone: measured
// in one run, good for other layouts, batches and orders of models of that kind on that machine.
//
// A key is a node's direction, piece and part ("F.experts.fc1", "reduce.dense"): what all layers
// and micro-batches have in common. As JSON:
//
//   {"format": "weft calibration 1", "wake_seconds": 2e-05,
//    "nodes": {"F.attention": {"factor": 8.1, "seconds": 0}}}
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"
#include "weft/grid/grid.h"
#include "weft/schedule/plan.h"
#include "weft/trace/span.h"

namespace weft::plan {

// A node takes its nominal time (nominal_costs.h, at the default rates) times `factor`, and
// `seconds` more; one that has no nominal time only those.
struct NodeFactor {
  double factor = 0, seconds = 0;

  bool operator==(const NodeFactor&) const = default;
};

struct Calibration {
  std::map<std::string, NodeFactor> nodes;
  double wake_seconds = 0;  // from the end of what another lane did to the node that waited for it

  bool operator==(const Calibration&) const = default;
};

// From traced steps of a run without emulated links, which took `seconds` untraced.
Calibration calibrate(const config::Config& config,
                      const std::vector<trace::Timeline>& timelines,
                      double seconds);

// The costs of another run, by pipeline rank; what its emulated links take (fabric.*) comes on top.
// ConfigError naming the kinds of nodes that the calibration has not seen.
exec::sim::CostTable calibrated_costs(const config::Config& config,
                                      const grid::Grid& grid,
                                      const std::vector<schedule::RankPlan>& plans,
                                      const Calibration& calibration);

// The step of a run, simulated at these costs.
double calibrated_seconds(const config::Config& config, const Calibration& calibration);

std::string print(const Calibration& calibration);
// ConfigError naming what is wrong with the text.
Calibration parse_calibration(std::string_view text);

}  // namespace weft::plan
