// The schedule of a config that may be far too large to run: planned and verified.
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
  std::int64_t micro_batches = 0;  // of the step
  std::int64_t planned = 0;        // of them

  bool valid() const { return complaints.empty(); }
};

// Plans and verifies the step of every pipeline rank. Where a step has so many micro-batches that
// this takes longer than a user waits, it is done for fewer of them, as many as keep the shape: the
// order of a pipeline repeats after its warm-up. `config` is legal.
ScheduleCheck check_schedule(const config::Config& config);

base::Json to_json(const ScheduleCheck& check);
std::string to_text(const ScheduleCheck& check);

}  // namespace weft::plan
