// Number of layers to offload: as many as the host link carries while they compute.
#pragma once

#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

struct OffloadedModule {
  config::OffloadModule module = config::OffloadModule::CoreAttn;
  std::vector<PieceName> parts;  // parts that it offloads; empty: the model has none
  double share = 1;              // fraction of the layers that can offload it
  bool is_cut = false;           // limited by the link
};

// Load of a micro-batch with equally many rows for every expert.
Load even_load(const config::Config& config);

// Bytes that the link carries during a micro-batch's forward, which is shorter than its backward;
// nullopt: unknown.
std::optional<double> carried_bytes(const config::Config& config);

// Anatomy of a pipeline rank with recomputation, before offloading. Pieces with a part in `parts`
// are split.
Anatomy before_offload(const config::Config& config,
                       int pp_rank,
                       const std::vector<PieceName>& parts);

// Modules of model.offload_modules with their shares of the layers that can offload them
// (offloadable, passes/offload.h). Modules listed first take precedence: if the link cannot carry
// all, the last ones are offloaded in fewer layers. The config alone decides, from advertised rates
// of hardware.gpu and the fractions that are reached in practice. runtime.offload_layers_share
// overrides that; model.activation_offload_fraction is the upper limit of both.
std::vector<OffloadedModule> offloaded_modules(const config::Config& config);

}  // namespace weft::schedule
