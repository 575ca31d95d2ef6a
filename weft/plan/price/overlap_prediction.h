// Prediction of an order by simulation, from costs measured in the plain order.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/contention.h"
#include "weft/exec/sim/costs.h"
#include "weft/exec/sim/step.h"
#include "weft/grid/fabric.h"
#include "weft/trace/span.h"

namespace weft::plan {

class OverlapPrediction {
 public:
  // `plain`: traced steps of the plain order of `plain_config` on `fabric` (nullopt: a network),
  // which took `plain_seconds` untraced. A rank without a timeline is like a traced rank of its
  // stage; a pretended world has one.
  OverlapPrediction(const config::Config& plain_config,
                    const std::optional<grid::Fabric>& fabric,
                    const std::vector<trace::Timeline>& plain,
                    double plain_seconds);

  // Replaces compute costs by those of these traced steps of the plain order. In them the device is
  // as busy as in the requested orders. A device that waits for links a third of the time has a
  // higher clock.
  void take_compute_from(const std::vector<trace::Timeline>& busy);

  // Adds the slowdown of compute beside communication: the share `slower` beside copies in device
  // memory. Communication on the requested links consists of such copies and of waiting. The copies
  // take the time that they took in the traced steps `free` on free links.
  void take_copies_from(const std::vector<trace::Timeline>& free, double slower);

  // Step time of another order of the same layout, from node costs and the plain step's overhead
  // beyond its nodes. The overhead is split between lane waits and consecutive nodes as in the
  // trace.
  double step_seconds(const config::Config& config) const;
  // Variant with compute and wire time only (network: least transfer time): no issue or wake-up
  // cost.
  double ideal_seconds(const config::Config& config) const;
  // Plain order without communication time.
  double compute_seconds() const;
  // Plain order without compute time: an operation of several ranks counts from the arrival of the
  // last rank. For steps traced on free links, the time of `links` is added.
  double communication_seconds(const grid::Fabric& links = {}) const;
  // Time that `links` add to the plain order, traced on free ones.
  double added_seconds(const grid::Fabric& links) const;
  // communication_seconds() of the layers alone, without the reductions and gathers for the
  // optimizer.
  double layers_communication_seconds(const grid::Fabric& links = {}) const;

 private:
  exec::sim::Overheads overheads_;
  exec::sim::Contention contention_;
  config::Config plain_config_;
  std::optional<grid::Fabric> fabric_;
  exec::sim::CostTable costs_;
  // Mean sent bytes of an operation by rank, over the traced micro-batches.
  std::map<std::pair<int, schedule::Node>, std::int64_t> sent_bytes_;
};

}  // namespace weft::plan
