// How much of a pipeline's idle time zb_h1 fills, by what the nodes of a run cost.
#pragma once

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"

namespace weft::plan {

// Seconds. Stages are made equal: every layer costs what the layers of the run cost on average, and
// embedding, head, optimizer and messages cost nothing.
struct Bubbles {
  // A micro-batch of one stage.
  double forward = 0, input_gradients = 0, weight_gradients = 0;
  // What a step takes longer than the work of one stage.
  double plain = 0, filled = 0;

  // How much of the plain order's bubble should be left: it is (pp - 1) (F + D + W) long there, and
  // (pp - 1) (F + D - W) here.
  double wanted_share() const;
  double share() const { return filled / plain; }
};

// `zero_bubble` is a judged config of that order, `measured` what its nodes cost: it has all nodes
// of 1F1B or the parts of them.
Bubbles bubbles_of(const config::Config& zero_bubble, const exec::sim::CostTable& measured);

}  // namespace weft::plan
