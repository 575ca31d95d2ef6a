// The flags of the harness, as `weft perf --flags` lists them.
#pragma once

#include <string>

#include "weft/base/json.h"

namespace weft::cli {

std::string flags_text();
base::Json flags_json();

// Those that say how `weft perf` measures, for its help: name and meaning, a line each.
std::string measuring_flags_text();

}  // namespace weft::cli
