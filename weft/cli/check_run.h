// What `weft check` finds of a run, without printing it.
#pragma once

#include "weft/cli/arguments.h"
#include "weft/cli/check_report.h"

namespace weft::cli {

struct CheckRequest {
  RunArguments run;
  ScheduleWish schedule = ScheduleWish::None;
  MemoryWish memory = MemoryWish::None;
  base::Overwrite overwrite = base::Overwrite::No;
};

// Less than half a second of any run that is not counted by wish: long steps are estimated.
CheckReport check_run(const CheckRequest& asked);

}  // namespace weft::cli
