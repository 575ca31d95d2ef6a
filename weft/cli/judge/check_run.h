// Findings of `weft check` on a run, without output.
#pragma once

#include "weft/cli/arguments.h"
#include "weft/cli/judge/check_report.h"

namespace weft::cli {

struct CheckRequest {
  RunArguments run;
  ScheduleWish schedule = ScheduleWish::None;
  MemoryWish memory = MemoryWish::None;
  base::Overwrite overwrite = base::Overwrite::No;
};

// Estimates the memory of long steps unless counting is requested; `weft bench check` bounds the
// time.
CheckReport check_run(const CheckRequest& asked);

}  // namespace weft::cli
