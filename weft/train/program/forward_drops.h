// State that a pass without gradients frees early: a layer's after the next layer, a micro-batch's
// after its last node.
#pragma once

#include <unordered_map>
#include <vector>

#include "weft/schedule/graph.h"

namespace weft::train {

class ForwardDrops {
 public:
  // State of a micro-batch: of one layer, or all of it (layer = kNone).
  struct State {
    int micro_batch = 0;
    int layer = schedule::kNone;
  };

  explicit ForwardDrops(const schedule::Graph& forward);

  // States whose last use is `node`.
  const std::vector<State>& after(const schedule::Node& node) const;

 private:
  std::unordered_map<schedule::Node, std::vector<State>, schedule::NodeHash> after_;
};

}  // namespace weft::train
