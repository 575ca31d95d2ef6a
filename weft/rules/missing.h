// Part of a legal config that this build cannot run.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/rules/rule.h"

namespace weft::rules {

struct Missing {
  std::string part;               // "tensor parallelism"
  std::vector<std::string> keys;  // keys that ask for it
  std::string message;
  std::string fix;
};

// Missing part of a GPU run on CPU cores; without_missing() drops nothing for it.
inline constexpr const char* kNoGpu = "a GPU";

// Missing part of a run that is too large for one process; a twin of the run may fit.
inline constexpr const char* kNoRoom = "room in one process";

bool is_built(config::LoadBalancing kind);

// Parts of a legal config that this build lacks; empty: it runs.
std::vector<Missing> missing_parts(const config::Config& config);

// Config without those parts, for planning what remains: on its target GPUs, and without the
// multi-token prediction layers of its layout.
config::Config without_missing(config::Config config);

// Limits of one process, which also refuse a run: ranks, bytes, nodes of the schedule.
std::vector<Missing> process_limits(const config::Config& config);
// Limits of a schedule alone, for which one process holds every pipeline rank.
std::vector<Missing> schedule_limits(const config::Config& config);

}  // namespace weft::rules
