// Progress line of weft train.
#pragma once

#include "weft/cli/terminal/time_left.h"
#include "weft/train/log/metrics.h"

namespace weft::cli {

// At most 79 columns if the numbers allow it, so that a terminal of 80 columns does not break it;
// the bar takes the rest. `left`: seconds, if known.
std::string progress_text(const train::StepRecord& record, std::optional<double> left);

}  // namespace weft::cli
