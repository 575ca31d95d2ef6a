// What the simulator says of an order before it runs: from costs measured in the plain one.
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
  // `plain` are traced steps of the plain order of `plain_config` on `fabric` (none: a network),
  // which took `plain_seconds` untraced. A rank without a timeline is like one of its stage that
  // has one: of a pretended world one rank tells.
  OverlapPrediction(const config::Config& plain_config,
                    const std::optional<grid::Fabric>& fabric,
                    const std::vector<trace::Timeline>& plain,
                    double plain_seconds);

  // From now on compute costs what it cost in these traced steps of the plain order, where the
  // device was as busy as in the orders asked for: one that waits for its links a third of the time
  // is clocked higher meanwhile.
  void take_compute_from(const std::vector<trace::Timeline>& busy);

  // From now on compute beside communication takes longer: by `slower`, as a part of itself, beside
  // copies in the device's memory. Communication on the links asked for is such copies, which take
  // what it took in the traced steps `free` on free links, and waiting.
  void take_copies_from(const std::vector<trace::Timeline>& free, double slower);

  // The step of another order of the same layout: what nodes cost, and what the plain step took
  // beyond its nodes, shared among waits between lanes and nodes that follow each other as its
  // trace has it.
  double step_seconds(const config::Config& config) const;
  // The same with nothing but compute and the wire (on a network, what transfers took at least):
  // nothing to issue, nobody to wake.
  double ideal_seconds(const config::Config& config) const;
  // The plain order if communication took no time.
  double compute_seconds() const;
  // The plain order if compute took no time: an operation of several ranks costs what it takes once
  // all of them have come to it. Steps that were traced on free links can be asked for `links`,
  // whose time is added.
  double communication_seconds(const grid::Fabric& links = {}) const;
  // What `links` add to the plain order, traced on free ones.
  double added_seconds(const grid::Fabric& links) const;
  // communication_seconds() of the layers alone: without what is reduced and gathered for the
  // optimizer.
  double layers_communication_seconds(const grid::Fabric& links = {}) const;

 private:
  exec::sim::Overheads overheads_;
  exec::sim::Contention contention_;
  config::Config plain_config_;
  std::optional<grid::Fabric> fabric_;
  exec::sim::CostTable costs_;
  // What a rank sends in an operation, whatever its micro-batch: the mean over what was traced.
  std::map<std::pair<int, schedule::Node>, std::int64_t> sent_bytes_;
};

}  // namespace weft::plan
