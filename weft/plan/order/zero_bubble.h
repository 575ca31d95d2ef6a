// Share of the pipeline bubble that zb_h1 fills, by the node costs of a run.
#pragma once

#include "weft/config/config.h"
#include "weft/exec/sim/costs.h"

namespace weft::plan {

// Seconds. All stages count as equal: every layer has the mean cost of the run's layers; embedding,
// head, optimizer and messages cost nothing.
struct Bubbles {
  // One micro-batch of one stage.
  double forward = 0, input_gradients = 0, weight_gradients = 0;
  // Step time beyond the work of one stage.
  double plain = 0, filled = 0;

  // Expected remaining share of the plain bubble: (pp - 1) (F + D + W) there, (pp - 1) (F + D - W)
  // here.
  double wanted_share() const;
  double share() const { return filled / plain; }
};

// `zero_bubble`: judged config of that order. `measured`: its node costs, with all nodes of 1F1B or
// their parts.
Bubbles bubbles_of(const config::Config& zero_bubble, const exec::sim::CostTable& measured);

}  // namespace weft::plan
