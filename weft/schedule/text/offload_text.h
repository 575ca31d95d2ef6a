// What of a model is offloaded, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::schedule {

// The layers in which a module is offloaded, of those that have it.
struct OffloadCount {
  config::OffloadModule module = config::OffloadModule::CoreAttn;
  std::int64_t offloaded = 0, all = 0;
  bool link_is_full = false;  // in no more of them, because the link does not carry more

  bool operator==(const OffloadCount&) const = default;
};

// Of each module that model.offload_modules name. The config has been validated.
std::vector<OffloadCount> offload_counts(const config::Config& config);

// "core_attn in 11 of 12 layers, expert_fc1 in 5 of 12"; empty where nothing is to be offloaded.
// Of a module that is offloaded in none because the link is full, that. The config has been
// validated.
std::string offload_text(const config::Config& config);

}  // namespace weft::schedule
