// What of the optimizer's state this rank keeps, and where.
#pragma once

#include <optional>
#include <vector>

#include "weft/derive/optimizer_offload.h"
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
  std::optional<int> offloaded = {};  // it is in host memory, and of that bucket of its home
};

// What a run's optimizers keep their state in.
optim::StateDtypes state_dtypes(const config::Config& config);

// All of a home's, or where ranks share its buckets, this rank's part of each. Where state is
// offloaded, each of these parts is two: the one in host memory, and the rest. `host`: see
// HostWorker; none where nothing is.
std::vector<OptimizerShare> make_optimizers(tensor::Pool& pool,
                                            tensor::Stream& stream,
                                            const config::Config& config,
                                            const model::Parameters& parameters,
                                            const Groups& groups,
                                            tensor::Stream* host);

}  // namespace weft::train
