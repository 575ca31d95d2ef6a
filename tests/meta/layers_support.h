// Who may include whom, as weft/layers.txt says it.
#pragma once

#include <map>
#include <set>

#include "tests/meta/repository_support.h"

namespace weft::meta {

// Module -> the modules it may include besides itself.
using Layers = std::map<std::string, std::set<std::string>, std::less<>>;

Layers parse_layers(std::string_view text);

// A line may name only modules of earlier lines, so that there is no circle.
Complaints order_complaints(std::string_view layers_text);

// The module of a path below weft/ ("exec/real/lanes.h"): the longest folder that is one. Empty:
// none.
std::string module_of(const Layers& layers, std::string_view path);

// What the includes of one file of weft/ break. Modules include only what their layer allows; a
// backend's folder (mpi, cpu, ...) is included by nobody outside it; a vendor's headers appear only
// where that vendor is wrapped.
Complaints include_complaints(const Layers& layers, const TextFile& file);

}  // namespace weft::meta
