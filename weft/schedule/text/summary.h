// Graph in one line: its turns, as in `F0.0 F1.0 [F2.0|B0.1] B1.1`. F or B, micro-batch, and chunk
// of the rank; brackets enclose concurrent turns.
#pragma once

#include <string>

#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

std::string summary(const Graph& graph, const Anatomy& anatomy);

}  // namespace weft::schedule
