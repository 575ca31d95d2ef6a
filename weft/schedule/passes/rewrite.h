// A graph taken apart into steps that name what they wait for, so that a pass can change the order
// and write it down again: waits that the anatomy requires come back by themselves, whatever the
// order.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

struct Step {
  Node node;
  std::vector<Node> waits;
};

using Steps = std::vector<Step>;

Steps steps_of(const Graph& graph);

// Of a training step. Every node that a step waits for or requires comes before it.
Graph write(const Steps& steps, const Anatomy& anatomy, int micro_batches);

// Puts the step at `from` behind the one at `to`; from < to.
void move_behind(Steps& steps, std::size_t from, std::size_t to);

}  // namespace weft::schedule
