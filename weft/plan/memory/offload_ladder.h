// Offload choices of a search: activations by module, and optimizer state by quarters.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

struct RecomputeRung;

// Modules whose inputs are offloaded; each rung extends the previous one. The link's capacity
// decides the number of layers per module, in the order of the names
// (schedule/memory/offload_share.h).
struct OffloadRung {
  std::string name;  // "none", "core_attn, attn_proj"
  std::vector<config::OffloadModule> modules;
  bool is_given = false;  // as in the config: sets no key
};
std::vector<OffloadRung> offload_ladder(const config::ModelConfig& model);

// Modules of a rung that are still kept beside a recompute rung.
std::vector<config::OffloadModule> modules_beside(const OffloadRung& rung,
                                                  const RecomputeRung& again,
                                                  const config::ModelConfig& model);

// Number of parts in which optimizer state moves to host memory.
inline constexpr std::size_t kStateQuarters = 4;
// Sets offloading with copies under updates. Megatron requires the precision-aware optimizer for
// it; with fp32 formats it keeps the same bytes.
void set_host_state(config::Config& config, std::size_t quarters);

}  // namespace weft::plan
