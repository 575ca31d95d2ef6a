// What of a model is offloaded, in words.
#pragma once

#include <string>

#include "weft/config/config.h"

namespace weft::schedule {

// "core_attn in 11 of 12 layers, expert_fc1 in 5 of 12"; empty where nothing is to be offloaded.
// The config has been validated.
std::string offload_text(const config::Config& config);

}  // namespace weft::schedule
