// Report from the available evidence.
#pragma once

#include "weft/report/evidence.h"
#include "weft/report/report.h"

namespace weft::report {

// ConfigError only for an invalid config; missing facts are left out, with a note.
Report analyse(const Evidence& evidence);

}  // namespace weft::report
