// Optimizer state of this rank, and its placement.
#pragma once

#include <optional>
#include <vector>

#include "weft/derive/memory/optimizer_offload.h"
#include "weft/model/parameters.h"
#include "weft/optim/adamw.h"
#include "weft/train/groups.h"

namespace weft::train {

// Optimizer of a range of a home's buffers.
struct OptimizerShare {
  model::Home home = model::Home::Dense;
  int chunk = 0;        // model chunk of the rank, if buckets are separate per chunk
  tensor::Range range;  // range in the home's buffers
  optim::AdamW adamw;
  // Bucket of its home; its state is in host memory. nullopt: not offloaded.
  std::optional<int> offloaded = {};
};

// Dtypes of a run's optimizer state.
optim::StateDtypes state_dtypes(const config::Config& config);

// Optimizers of a home: one over all of it, or this rank's part of each bucket if ranks share
// buckets. With offloading each part is split in two: the state in host memory, and the rest.
// `host`: see HostWorker; nullptr: nothing is offloaded.
std::vector<OptimizerShare> make_optimizers(tensor::Pool& pool,
                                            tensor::Stream& stream,
                                            const config::Config& config,
                                            const model::Parameters& parameters,
                                            const Groups& groups,
                                            tensor::Stream* host);

}  // namespace weft::train
