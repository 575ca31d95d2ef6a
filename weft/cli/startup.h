// What a run says when it starts, so that a clean start confirms what is active.
#pragma once

#include <string>
#include <vector>

#include "weft/rules/validate.h"

namespace weft::cli {

// Warnings, what was set automatically, and one line for each overlap mode: on or off, and why.
std::vector<std::string> startup_lines(const rules::Verdict& verdict);

}  // namespace weft::cli
