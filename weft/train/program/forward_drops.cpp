#include "weft/train/program/forward_drops.h"

#include <algorithm>
#include <map>
#include <optional>

namespace weft::train {

using schedule::Node;

ForwardDrops::ForwardDrops(const schedule::Graph& forward) {
  std::map<int, std::map<int, std::size_t>> last_of_layer;  // by micro-batch and layer
  std::map<int, std::size_t> last;                          // by micro-batch
  for (std::size_t i = 0; i < forward.entries.size(); ++i) {
    const Node& node = forward.entries[i].node;
    if (node.micro_batch == schedule::kNone) continue;
    last[node.micro_batch] = i;
    if (node.layer != schedule::kNone) last_of_layer[node.micro_batch][node.layer] = i;
  }
  const auto drop = [&](std::size_t entry, const State& state) {
    after_[forward.entries[entry].node].push_back(state);
  };
  for (const auto& [micro_batch, layers] : last_of_layer) {
    std::optional<int> before;  // layer whose output is this one's input
    for (const auto& [layer, entry] : layers) {
      const bool follows = before && *before + 1 == layer;
      if (follows) drop(std::max(entry, layers.at(*before)), {micro_batch, *before});
      before = layer;
    }
  }
  for (const auto& [micro_batch, entry] : last) drop(entry, {micro_batch});
}

const std::vector<ForwardDrops::State>& ForwardDrops::after(const Node& node) const {
  static const std::vector<State> none;
  const auto found = after_.find(node);
  return found == after_.end() ? none : found->second;
}

}  // namespace weft::train
