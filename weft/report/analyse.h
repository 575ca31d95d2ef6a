// A report from what there is to look at.
#pragma once

#include "weft/report/evidence.h"
#include "weft/report/report.h"

namespace weft::report {

// ConfigError only for a config that is no config: what cannot be told is left out, with a note.
Report analyse(const Evidence& evidence);

}  // namespace weft::report
