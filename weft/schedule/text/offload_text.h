// Description of a model's offloading.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::schedule {

// Number of layers in which a module is offloaded, and that have it.
struct OffloadCount {
  config::OffloadModule module = config::OffloadModule::CoreAttn;
  std::int64_t offloaded = 0, all = 0;
  bool link_is_full = false;  // limited by the link

  bool operator==(const OffloadCount&) const = default;
};

// One per module of model.offload_modules. The config is valid.
std::vector<OffloadCount> offload_counts(const config::Config& config);

// "core_attn in 11 of 12 layers, expert_fc1 in 5 of 12"; empty: no offloading. Says so if a full
// link leaves a module without layers. The config is valid.
std::string offload_text(const config::Config& config);

}  // namespace weft::schedule
