// Step with fewer micro-batches and the order of the whole step: a pipeline repeats after its
// warm-up.
#pragma once

#include <cstdint>
#include <functional>

#include "weft/config/config.h"

namespace weft::plan {

// Micro-batches of one rank in one step.
std::int64_t micro_batches_of(const config::Config& config);

// Fewest of `all` micro-batches that keep the order's shape: warm-up, two steady rounds, cool-down.
std::int64_t fewest_micro_batches(const config::ModelConfig& model, std::int64_t all);

// Config with `micro_batches` per step on every rank.
config::Config with_micro_batches(config::Config config, std::int64_t micro_batches);

// Whole step extrapolated from short ones: the cost of one more group of micro-batches repeats.
struct WholeStep {
  std::int64_t micro_batches = 0;  // in the whole step
  std::int64_t run = 0;            // in the short step
  std::int64_t repeated = 0;  // additional groups of the whole step; 0: the short step is whole
  double run_seconds = 0, group_seconds = 0;

  double seconds() const { return run_seconds + static_cast<double>(repeated) * group_seconds; }
};
// `seconds_of`: time of a step with this many micro-batches. Called for the short step and, if the
// whole one is longer, for one more group.
WholeStep whole_step(const config::Config& config,
                     const std::function<double(std::int64_t micro_batches)>& seconds_of);

}  // namespace weft::plan
