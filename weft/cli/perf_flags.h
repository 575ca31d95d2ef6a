// The flags of the harness, as `weft perf --flags` lists them.
#pragma once

#include <string>

namespace weft::cli {

std::string flags_text();

}  // namespace weft::cli
