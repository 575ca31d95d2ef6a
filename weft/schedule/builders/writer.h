// Writes a graph node by node. The anatomy gives each node's lane and waits; a wait that lanes or
// other waits already imply is left out.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/node_index.h"

namespace weft::schedule {

class GraphWriter {
 public:
  GraphWriter(const Anatomy& anatomy, int micro_batches, StepKind kind)
      : anatomy_(anatomy), micro_batches_(micro_batches), kind_(kind) {}

  // Adds a node; its required nodes and `waits` must have been added before.
  void add(const Node& node, const std::vector<Node>& waits = {});
  // Adds a D and its W as one unit: later nodes that need the D wait for the W too.
  void add_unit(const Node& input_gradient, const Node& weight_gradient);
  Graph take() { return std::move(graph_); }
  // Reserves memory for `nodes` nodes.
  void reserve(std::size_t nodes) {
    graph_.entries.reserve(nodes);
    index_.reserve(nodes);
  }

 private:
  const Anatomy& anatomy_;
  int micro_batches_;
  StepKind kind_;
  Graph graph_;
  Order order_;
  NodeIndex index_;                 // by node: entry that ends the node or its unit
  std::vector<int> needs_, waits_;  // entries, of the node being added
};

}  // namespace weft::schedule
