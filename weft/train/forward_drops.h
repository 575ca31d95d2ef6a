// What a pass without gradients need not keep: a layer's state goes when the layer behind it is
// over, and a micro-batch's when all of it is.
#pragma once

#include <unordered_map>
#include <vector>

#include "weft/schedule/graph.h"

namespace weft::train {

class ForwardDrops {
 public:
  // Of a micro-batch: one layer, or all there is (layer = kNone).
  struct State {
    int micro_batch = 0;
    int layer = schedule::kNone;
  };

  explicit ForwardDrops(const schedule::Graph& forward);

  // Whose last use is that node.
  const std::vector<State>& after(const schedule::Node& node) const;

 private:
  std::unordered_map<schedule::Node, std::vector<State>, schedule::NodeHash> after_;
};

}  // namespace weft::train
