// A step with fewer micro-batches that has the order of the whole one: the order of a pipeline
// repeats after its warm-up.
#pragma once

#include <cstdint>
#include <functional>

#include "weft/config/config.h"

namespace weft::plan {

// Of one rank in one step.
std::int64_t micro_batches_of(const config::Config& config);

// The fewest of `all` micro-batches that keep the shape of the order: warm-up, two rounds of the
// steady state, the end.
std::int64_t fewest_micro_batches(const config::ModelConfig& model, std::int64_t all);

// The config whose step has `micro_batches` on every rank.
config::Config with_micro_batches(config::Config config, std::int64_t micro_batches);

// A whole step from short ones: what one group of micro-batches more takes stands for the rest.
struct WholeStep {
  std::int64_t micro_batches = 0;  // of the step
  std::int64_t run = 0;            // of them, in the short one
  std::int64_t repeated = 0;       // groups that the step has besides; 0: the short one is all
  double run_seconds = 0, group_seconds = 0;

  double seconds() const { return run_seconds + static_cast<double>(repeated) * group_seconds; }
};
// `seconds_of` a step of so many micro-batches: asked for the short one, and then, where the step
// has more, for that with a group besides.
WholeStep whole_step(const config::Config& config,
                     const std::function<double(std::int64_t micro_batches)>& seconds_of);

}  // namespace weft::plan
