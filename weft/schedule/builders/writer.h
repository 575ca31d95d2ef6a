// Writes a graph node by node: the lane comes from the anatomy, and so do the waits; a wait that
// lanes or other waits already imply is left out.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"
#include "weft/schedule/node_index.h"

namespace weft::schedule {

class GraphWriter {
 public:
  GraphWriter(const Anatomy& anatomy, int micro_batches, StepKind kind)
      : anatomy_(anatomy), micro_batches_(micro_batches), kind_(kind) {}

  // Every node that `node` requires, and those it is told to wait for, must have been added before.
  void add(const Node& node, const std::vector<Node>& waits = {});
  // A D and its W as one unit: whatever needs the D from now on waits for the W too.
  void add_unit(const Node& input_gradient, const Node& weight_gradient);
  Graph take() { return std::move(graph_); }

 private:
  const Anatomy& anatomy_;
  int micro_batches_;
  StepKind kind_;
  Graph graph_;
  Order order_;
  NodeIndex index_;  // the entry that ends a node or its unit
};

}  // namespace weft::schedule
