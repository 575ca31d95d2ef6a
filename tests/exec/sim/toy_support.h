// Steps from text for the simulation's tests: one graph per rank, costs in nanoseconds.
#pragma once

#include <cstdint>
#include <deque>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "weft/exec/sim/simulate.h"

namespace weft::exec::sim {

// All ranks take part in collectives; pipeline lanes join a rank to the next and the previous, the
// sender first.
std::vector<int> everyone_or_neighbour(int rank, const schedule::Entry& entry, int ranks);

class ToyStep {
 public:
  using CostsNs = std::map<std::string, double>;

  // Costs by node, "node@rank" before "node"; 0 if neither is given.
  ToyStep(const std::vector<std::string>& texts, CostsNs costs);
  ToyStep(const ToyStep&) = delete;

  SimulatedStep& step() { return step_; }
  Result run() const { return simulate(step_); }
  // Time of the node on the rank.
  Interval at(const std::string& node, int rank = 0) const;

 private:
  std::deque<schedule::Graph> graphs_;
  CostsNs costs_;
  SimulatedStep step_;
};

// Fabric of one machine, in bytes per nanosecond.
grid::Fabric fabric_of(double bytes_per_ns, double latency_ns);

// Prints an interval for gtest.
void PrintTo(const Interval& interval, std::ostream* out);

// Text of the simulation's ConfigError; empty: none.
std::string complaint_of(const SimulatedStep& step);

}  // namespace weft::exec::sim
