#include "weft/schedule/passes/shared_experts.h"

#include <map>
#include <tuple>

#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {
namespace {

// One layer of one micro-batch, one way: layer, micro-batch, whether forward.
using Way = std::tuple<int, int, bool>;

Way way_of(const Node& node) {
  return {node.layer, node.micro_batch, node.direction == Direction::F};
}

// The shared experts' steps of one way.
struct Halves {
  Steps under_first, under_second;  // of the two times that rows travel
};

std::map<Way, Halves> take_shared(Steps& steps) {
  std::map<Way, Halves> taken;
  Steps others;
  for (Step& step : steps) {
    const Node& node = step.node;
    if (node.piece != Piece::Shared) {
      others.push_back(std::move(step));
      continue;
    }
    const Part first = node.direction == Direction::F ? Part::Fc1 : Part::Fc2;
    Halves& halves = taken[way_of(node)];
    (node.part == first ? halves.under_first : halves.under_second).push_back(std::move(step));
  }
  steps = std::move(others);
  return taken;
}

// Whether the last of a layer's rows set out on their way back.
bool is_last_way_back(const Anatomy& anatomy, const Node& node) {
  const Place back = node.direction == Direction::F ? Place::Combine : Place::Dispatch;
  return row_of(node.piece).place == back &&
         (node.slice == kNone || node.slice + 1 == anatomy.flow.slices);
}

void move(Steps& from, Steps& to) {
  for (Step& step : from) to.push_back(std::move(step));
  from.clear();
}

}  // namespace

Graph overlap_shared_experts(const Graph& graph, const Anatomy& anatomy, int micro_batches) {
  Steps steps = steps_of(graph);
  std::map<Way, Halves> shared = take_shared(steps);
  Steps order;
  for (Step& step : steps) {
    const auto own = shared.find(way_of(step.node));
    const bool back = is_last_way_back(anatomy, step.node);
    // In front of the first experts, behind what travels to them.
    if (own != shared.end() && row_of(step.node.piece).place == Place::Between) {
      move(own->second.under_first, order);
    }
    order.push_back(std::move(step));
    if (own != shared.end() && back) move(own->second.under_second, order);
  }
  return write(order, anatomy, micro_batches);
}

}  // namespace weft::schedule
