// Anatomies and graphs shared by the schedule tests, and happens-before computed the slow way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/fault.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

inline constexpr ReductionScope kAlone{};
inline constexpr ReductionScope kEverySum{Sums::OverRanks, Sums::OverRanks, Sums::OverRanks};

// One letter per layer: 'd' dense, 'm' mixture of experts.
config::ModelConfig model_of(const std::string& layers, std::int64_t ep);
// Model with tied embeddings.
config::ModelConfig tied_model_of(const std::string& layers, std::int64_t ep);

// Happens-before by following lane, host and wait edges from every entry.
class Reach {
 public:
  explicit Reach(const Graph& graph);
  bool before(std::size_t first, std::size_t second) const { return reached_[first][second]; }

 private:
  std::vector<std::vector<bool>> reached_;
};

// Entry of a node given by its text; fails the test if it is missing.
std::size_t find(const Graph& graph, const std::string& node);
// True if neither of two nodes ends before the other starts.
bool run_together(const Graph& graph, const std::string& a, const std::string& b);
Graph without_entry(const Graph& graph, std::size_t entry);
// Swaps entries i and i + 1; waits keep naming the same nodes.
Graph with_swapped(const Graph& graph, std::size_t i);

// Text of a ConfigError; empty: none.
std::string node_complaint(const std::string& text);
std::string graph_complaint(const std::string& text);

std::vector<std::string> sentences(const std::vector<Fault>& faults);
bool contains(const std::vector<std::string>& complaints, const std::string& part);
bool contains(const std::vector<Fault>& faults, const std::string& part);

}  // namespace weft::schedule
