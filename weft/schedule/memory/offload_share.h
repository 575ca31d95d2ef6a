// How many layers can be offloaded: as many as the link to the host carries while they compute.
#pragma once

#include <optional>
#include <vector>

#include "weft/config/config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

struct OffloadedModule {
  config::OffloadModule module = config::OffloadModule::CoreAttn;
  std::vector<PieceName> parts;  // whose output it is; none: the model has nothing of the kind
  double share = 1;              // of the layers that have it to offload
  bool is_cut = false;           // the link does not carry more of it
};

// What a micro-batch brings a rank, where every expert gets as many rows as any other.
Load even_load(const config::Config& config);

// How many bytes of a micro-batch the link carries while the layers compute their forward, which is
// shorter than their backward; none: nobody knows.
std::optional<double> carried_bytes(const config::Config& config);

// A pipeline rank with what is recomputed, and nothing offloaded yet. Pieces of which `parts` name
// a part are split.
Anatomy before_offload(const config::Config& config,
                       int pp_rank,
                       const std::vector<PieceName>& parts);

// What model.offload_modules name, with their shares of the layers that have something to offload
// (offloadable, passes/offload.h). Modules come first as they are named: where the link does not
// carry all of them, the last ones are offloaded in fewer layers. Decided from
// the config alone: by the advertised rates of hardware.gpu and what of them is reached in
// practice. runtime.offload_layers_share takes the place of that; model.activation_offload_fraction
// is the most of either.
std::vector<OffloadedModule> offloaded_modules(const config::Config& config);

}  // namespace weft::schedule
