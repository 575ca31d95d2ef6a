// What a machine was measured to take, in one run, so that it says what other runs take on it:
// other models, batches, layouts and orders.
//
// Two parts. Rates are the machine's: how many operations of products and of attention it does in a
// second, how many bytes it moves in memory and over links, what a call and a wait between lanes
// take, how much slower compute is beside communication. Factors are the program's: of a kind of
// node ("F.experts": a node's direction, piece and part), how much longer its products, attention,
// other operations and exchanges take than the rates say of its work (node_work.h), and how many
// calls they are. A kind that was not seen has the factors of its piece, or 1.
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
#include "weft/plan/node_work.h"
#include "weft/schedule/plan.h"
#include "weft/trace/span.h"

namespace weft::plan {

// Seconds for one of each thing, on one rank. 0: it takes no time that could be told.
struct MachineRates {
  double product_flop = 0;
  double weight_byte = 0;  // of a product's weights, besides its operations
  double product = 0;      // its begin and end, whatever its size
  double attention_forward_flop = 0;
  double attention_backward_flop = 0;
  double memory_byte = 0;
  double memory_call = 0;
  double link_byte = 0;
  double link_call = 0;
  double wake = 0;  // from the end of what another lane did to the node that waited for it
  double turn = 0;  // that compute keeps a core which compute of another rank wants

  // Shares, and a number.
  // What compute takes in a step, of what its operations take in a trace: what is between them,
  // ranks that wait for each other, and what a trace adds.
  double untraced = 1;
  double beside_communication = 0;  // of itself, that compute takes longer beside communication
  double beside_compute = 0;        // and the other way round
  double cores = 0;                 // that all ranks have together; 0: a device computes

  bool operator==(const MachineRates&) const = default;
};

struct NodeFactor {
  double product = 1, attention = 1, memory = 1, link = 1;
  double other = 1;         // times nominal seconds
  double memory_calls = 1;  // of one node: operations that are neither product nor attention
  double seconds = 0;       // of a node without any work

  bool operator==(const NodeFactor&) const = default;
};

struct Calibration {
  MachineRates rates;
  std::map<std::string, NodeFactor> nodes;

  bool operator==(const Calibration&) const = default;
};

// A run without emulated links: traced steps, and what a step took untraced.
struct CalibrationRun {
  const config::Config& config;
  const std::vector<trace::Timeline>& timelines;
  double seconds = 0;
};

// The cores that compute runs on: as `cores` and `turn` in the rates.
struct HostCores {
  double count = 0;
  double turn_seconds = 0;
};

// `overlapped` is the same run in an order in which communication is beside compute: it tells how
// much slower the two are there.
Calibration calibrate(const CalibrationRun& plain,
                      const std::optional<CalibrationRun>& overlapped,
                      const HostCores& cores);

// The costs of another run, by pipeline rank. What its emulated links take (fabric.*) runs beside
// the copies: the longer counts. ConfigError naming kinds of nodes that nothing is known of.
exec::sim::CostTable calibrated_costs(const config::Config& config,
                                      const grid::Grid& grid,
                                      const std::vector<schedule::RankPlan>& plans,
                                      const Calibration& calibration);

exec::sim::Overheads overheads_of(const Calibration& calibration);

// What slows nodes of the run down beside each other.
exec::sim::Contention contention_of(const config::Config& config, const Calibration& calibration);

// The step of a run, simulated at these costs.
struct CalibratedStep {
  double seconds = 0;
  exec::sim::CostTable costs;  // by pipeline rank; of nodes alone, before they slow each other down
};
CalibratedStep calibrated_step(const config::Config& config, const Calibration& calibration);

// "F.experts": what all layers, micro-batches and slices have in common.
std::string kind_of_node(schedule::Node node);

// Two lines for people.
std::string describe(const MachineRates& rates);

std::string print(const Calibration& calibration);
// ConfigError naming what is wrong with the text.
Calibration parse_calibration(std::string_view text);

}  // namespace weft::plan
