// The progress line of weft train.
#pragma once

#include "weft/cli/terminal/time_left.h"
#include "weft/train/log/metrics.h"

namespace weft::cli {

// At most 79 columns wherever its numbers allow it, so that a terminal of 80 never breaks it: the
// bar takes what the numbers leave. `left`: seconds, where they are known.
std::string progress_text(const train::StepRecord& record, std::optional<double> left);

}  // namespace weft::cli
