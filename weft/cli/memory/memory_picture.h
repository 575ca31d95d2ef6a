// Picture of every pipeline rank's memory over its training step.
#pragma once

#include <string>

#include "weft/cli/memory/memory_report.h"

namespace weft::cli {

// Bytes by tag in issue order, ranks below each other on one scale, with each peak and the GPU's
// memory. Many nodes are thinned to the largest of each group.
std::string to_svg(const MemoryReport& report, const std::string& title);

}  // namespace weft::cli
