// Anatomies and graphs the schedule tests share, and happens-before worked out the slow way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

inline constexpr ReductionScope kAlone{};
inline constexpr ReductionScope kEverySum{Sums::OverRanks, Sums::OverRanks, Sums::OverRanks};

// One letter a layer: 'd' dense, 'm' mixture of experts.
config::ModelConfig model_of(const std::string& layers, std::int64_t ep);
// The same with tied embeddings.
config::ModelConfig tied_model_of(const std::string& layers, std::int64_t ep);

// Happens-before by walking the lane, host and wait edges from every entry.
class Reach {
 public:
  explicit Reach(const Graph& graph);
  bool before(std::size_t first, std::size_t second) const { return reached_[first][second]; }

 private:
  std::vector<std::vector<bool>> reached_;
};

// The entry of a node given by its text; fails the test where there is none.
std::size_t find(const Graph& graph, const std::string& node);
// Whether neither of two nodes is over before the other starts.
bool run_together(const Graph& graph, const std::string& a, const std::string& b);
Graph without_entry(const Graph& graph, std::size_t entry);
// Entries i and i + 1 change places; waits go on naming the same nodes.
Graph with_swapped(const Graph& graph, std::size_t i);

// What a ConfigError says; empty where there is none.
std::string node_complaint(const std::string& text);
std::string graph_complaint(const std::string& text);

bool contains(const std::vector<std::string>& complaints, const std::string& part);

}  // namespace weft::schedule
