// The memory of every pipeline rank over its training step, as a picture.
#pragma once

#include <string>

#include "weft/cli/memory/memory_report.h"

namespace weft::cli {

// Bytes by tag as the nodes of a step are issued, one rank below the other on one scale, with each
// peak and the GPU's memory. Of many nodes the largest of each few is drawn.
std::string to_svg(const MemoryReport& report, const std::string& title);

}  // namespace weft::cli
