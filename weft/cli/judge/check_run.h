// What `weft check` finds of a run, without printing it.
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

// Long steps are estimated where counting is not asked for: `weft bench check` holds the time.
CheckReport check_run(const CheckRequest& asked);

}  // namespace weft::cli
