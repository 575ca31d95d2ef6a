// What is legal but this build cannot run.
#pragma once

#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/config/rules/rule.h"

namespace weft::config {

struct Missing {
  std::string part;               // "tensor parallelism"
  std::vector<std::string> keys;  // that ask for it
  std::string message;
  std::string fix;
};

bool is_built(LoadBalancing kind);

// The parts that a legal config asks for and this build has not. An empty list: it runs.
std::vector<Missing> missing_parts(const Config& config);

// Limits of one process, which also refuse a run: ranks, bytes, nodes of the schedule.
std::vector<Missing> process_limits(const Config& config);
// The same for a schedule alone, of which one process holds every pipeline rank.
std::vector<Missing> schedule_limits(const Config& config);

}  // namespace weft::config
