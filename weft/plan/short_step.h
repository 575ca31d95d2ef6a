// A step with fewer micro-batches that has the order of the whole one: the order of a pipeline
// repeats after its warm-up.
#pragma once

#include <cstdint>

#include "weft/config/config.h"

namespace weft::plan {

// Of one rank in one step.
std::int64_t micro_batches_of(const config::Config& config);

// The fewest of `all` micro-batches that keep the shape of the order: warm-up, two rounds of the
// steady state, the end.
std::int64_t fewest_micro_batches(const config::ModelConfig& model, std::int64_t all);

// The config whose step has `micro_batches` on every rank.
config::Config with_micro_batches(config::Config config, std::int64_t micro_batches);

}  // namespace weft::plan
