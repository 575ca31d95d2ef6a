// Flags of the harness, as `weft perf --flags` lists them.
#pragma once

#include <string>

#include "weft/base/json.h"

namespace weft::cli {

std::string flags_text();
base::Json flags_json();

// Measurement flags for the help of `weft perf`: one line with name and meaning each.
std::string measuring_flags_text();

}  // namespace weft::cli
