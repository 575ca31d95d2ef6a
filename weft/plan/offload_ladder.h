// What of a run a search may put into the host's memory: activations by module, and quarters of
// the optimizer's state.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "weft/config/config.h"

namespace weft::plan {

struct RecomputeRung;

// Modules whose inputs wait in the host's memory, from none on: every rung names those of the one
// before it and more. How many layers of each go follows from what the link carries
// (schedule/offload_share.h), first named first.
struct OffloadRung {
  std::string name;  // "none", "core_attn, attn_proj"
  std::vector<config::OffloadModule> modules;
  bool is_given = false;  // as the config says: nothing is set
};
std::vector<OffloadRung> offload_ladder(const config::ModelConfig& model);

// Those of a rung that are kept at all beside what runs again.
std::vector<config::OffloadModule> modules_beside(const OffloadRung& rung,
                                                  const RecomputeRung& again,
                                                  const config::ModelConfig& model);

// The parts in which the optimizer's state goes to the host's memory.
inline constexpr std::size_t kStateQuarters = 4;
// Copies overlap with updates. Megatron wants the precision-aware optimizer beside it; with its
// formats left at fp32 it keeps the same bytes.
void set_host_state(config::Config& config, std::size_t quarters);

}  // namespace weft::plan
