// Planned and verified schedule of a config, even one too large to run.
#pragma once

#include <string>
#include <vector>

#include "weft/base/json.h"
#include "weft/config/config.h"

namespace weft::plan {

struct ScheduleCheck {
  struct Rank {
    std::int64_t chunks = 0;
    std::int64_t nodes = 0;
  };
  std::vector<Rank> ranks;  // by pipeline rank
  std::vector<std::string> complaints;
  std::int64_t micro_batches = 0;  // micro-batches of the step
  std::int64_t planned = 0;        // micro-batches of the planned step

  bool valid() const { return complaints.empty(); }
};

// Plans and verifies the step of every pipeline rank. A step with very many micro-batches is
// shortened to a number that keeps its shape, since a pipeline repeats after its warm-up. `config`
// must be legal.
ScheduleCheck check_schedule(const config::Config& config);

base::Json to_json(const ScheduleCheck& check);
std::string to_text(const ScheduleCheck& check);

}  // namespace weft::plan
