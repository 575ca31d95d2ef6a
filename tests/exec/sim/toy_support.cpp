#include "tests/exec/sim/toy_support.h"

#include <gtest/gtest.h>

#include <numeric>
#include <ostream>

#include "weft/base/error.h"
#include "weft/schedule/text/text.h"

namespace weft::exec::sim {

using schedule::Lane;

std::vector<int> everyone_or_neighbour(int rank, const schedule::Entry& entry, int ranks) {
  if (entry.lane == Lane::PpSendNext) return {rank, rank + 1};
  if (entry.lane == Lane::PpSendPrevious) return {rank, rank - 1};
  if (entry.lane == Lane::PpReceiveNext) return {rank + 1, rank};
  if (entry.lane == Lane::PpReceivePrevious) return {rank - 1, rank};
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

ToyStep::ToyStep(const std::vector<std::string>& texts, CostsNs costs) : costs_(std::move(costs)) {
  for (const std::string& text : texts) {
    step_.graphs.push_back(&graphs_.emplace_back(schedule::parse_graph(text)));
  }
  step_.members = [this](int rank, const schedule::Entry& entry) {
    return everyone_or_neighbour(rank, entry, static_cast<int>(graphs_.size()));
  };
  step_.cost = [this](int rank, int entry) -> Cost {
    const std::string node = schedule::print(
        graphs_[static_cast<std::size_t>(rank)].entries[static_cast<std::size_t>(entry)].node);
    for (const std::string& name : {node + "@" + std::to_string(rank), node}) {
      if (const auto found = costs_.find(name); found != costs_.end()) {
        return {.seconds = found->second * 1e-9};
      }
    }
    return {};
  };
}

Interval ToyStep::at(const std::string& node, int rank) const {
  const auto& entries = graphs_[static_cast<std::size_t>(rank)].entries;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (schedule::print(entries[i].node) == node) {
      return run().entries[static_cast<std::size_t>(rank)][i];
    }
  }
  ADD_FAILURE() << "no node " << node << " on rank " << rank;
  return {};
}

grid::Fabric fabric_of(double bytes_per_ns, double latency_ns) {
  return {.intra = {.bytes_per_second = bytes_per_ns * 1e9, .latency_seconds = latency_ns * 1e-9}};
}

void PrintTo(const Interval& interval, std::ostream* out) {
  *out << "[" << interval.begin_ns << ", " << interval.end_ns << "]";
}

std::string complaint_of(const SimulatedStep& step) {
  try {
    simulate(step);
  } catch (const base::ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace weft::exec::sim
