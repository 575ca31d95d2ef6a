// What of the optimizer's state this rank keeps.
#pragma once

#include <vector>

#include "weft/model/parameters.h"
#include "weft/optim/adamw.h"
#include "weft/train/groups.h"

namespace weft::train {

// The optimizer of a range of a home's buffers.
struct OptimizerShare {
  model::Home home = model::Home::Dense;
  int chunk = 0;        // of the rank, where buckets keep them apart
  tensor::Range range;  // of the home's buffers
  optim::AdamW adamw;
};

// What a run's optimizers keep their state in.
optim::StateDtypes state_dtypes(const config::Config& config);

// All of a home's, or where ranks share its buckets, this rank's part of each.
std::vector<OptimizerShare> make_optimizers(tensor::Pool& pool,
                                            tensor::Stream& stream,
                                            const config::Config& config,
                                            const model::Parameters& parameters,
                                            const Groups& groups);

}  // namespace weft::train
