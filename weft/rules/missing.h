// What is legal but this build cannot run.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/rules/rule.h"

namespace weft::rules {

struct Missing {
  std::string part;               // "tensor parallelism"
  std::vector<std::string> keys;  // that ask for it
  std::string message;
  std::string fix;
};

// The part of a run for GPUs that is to compute on cores: nothing of it is left out for that.
inline constexpr const char* kNoGpu = "a GPU";

// The part of a run that is too large for one process: a twin of it need not be.
inline constexpr const char* kNoRoom = "room in one process";

bool is_built(config::LoadBalancing kind);

// The parts that a legal config asks for and this build has not. An empty list: it runs.
std::vector<Missing> missing_parts(const config::Config& config);

// The run without those parts, for who looks at what is left of it: on the GPUs it is judged for,
// without the layers of multi-token prediction that its layout names.
config::Config without_missing(config::Config config);

// Limits of one process, which also refuse a run: ranks, bytes, nodes of the schedule.
std::vector<Missing> process_limits(const config::Config& config);
// The same for a schedule alone, of which one process holds every pipeline rank.
std::vector<Missing> schedule_limits(const config::Config& config);

}  // namespace weft::rules
