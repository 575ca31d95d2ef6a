// Calibration of a machine by one run, to predict runs of other models, batches, layouts and
// orders.
//
// Two parts. Rates belong to the machine: FLOP/s of products and attention, and bytes per second in
// memory and over links. They include latencies of calls and lane waits, and the slowdown of
// compute beside communication. Factors belong to the program. For a kind of node ("F.experts":
// direction, piece and part) they scale the time that the rates give for its work
// (plan/cost/node_work.h): products, attention, other operations and exchanges. They also count its
// calls. An unseen kind has the factors of its piece, or 1.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/config/config.h"
#include "weft/exec/sim/contention.h"
#include "weft/exec/sim/costs.h"
#include "weft/grid/grid.h"
#include "weft/plan/cost/node_work.h"
#include "weft/schedule/plan.h"
#include "weft/trace/span.h"

namespace weft::plan {

// Seconds per unit on one rank. 0: not measurable.
struct MachineRates {
  double product_flop = 0;
  double weight_byte = 0;  // per byte of a product's weights, besides its operations
  double product = 0;      // latency of a product, independent of its size
  double attention_forward_flop = 0;
  double attention_backward_flop = 0;
  double memory_byte = 0;
  double memory_call = 0;
  double link_byte = 0;
  double link_call = 0;
  double wake = 0;  // from the end of work on another lane to the start of the waiting node
  double turn = 0;  // scheduler time slice of compute threads on one core

  // Dimensionless values. untraced: compute in an untraced step over the sum of traced operations.
  // It covers gaps, ranks that wait for each other, and the cost of tracing.
  double untraced = 1;
  double beside_communication = 0;  // relative slowdown of compute beside communication
  double beside_compute = 0;        // relative slowdown of communication beside compute
  double cores = 0;                 // cores of all ranks together; 0: a device computes

  bool operator==(const MachineRates&) const = default;
};

struct NodeFactor {
  double product = 1, attention = 1, memory = 1, link = 1;
  double other = 1;         // scales nominal seconds
  double memory_calls = 1;  // operations of one node that are neither product nor attention
  double seconds = 0;       // time of a node without any work

  bool operator==(const NodeFactor&) const = default;
};

struct Calibration {
  MachineRates rates;
  std::map<std::string, NodeFactor> nodes;

  bool operator==(const Calibration&) const = default;
};

// Node costs of another run, by pipeline rank. Emulated links (fabric.*) run concurrently with the
// copies: the longer counts. ConfigError with the kinds of nodes that the calibration lacks.
exec::sim::CostTable calibrated_costs(const config::Config& config,
                                      const grid::Grid& grid,
                                      const std::vector<schedule::RankPlan>& plans,
                                      const Calibration& calibration);

exec::sim::Overheads overheads_of(const Calibration& calibration);

// Mutual slowdown of concurrent nodes of the run.
exec::sim::Contention contention_of(const config::Config& config, const Calibration& calibration);

// Simulated step of a run at these costs.
struct CalibratedStep {
  double seconds = 0;
  exec::sim::CostTable costs;  // by pipeline rank; nodes alone, without mutual slowdown
};
CalibratedStep calibrated_step(const config::Config& config, const Calibration& calibration);

// "F.experts": the node without layer, micro-batch and slice.
std::string kind_of_node(schedule::Node node);

}  // namespace weft::plan
