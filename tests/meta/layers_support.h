// Allowed includes between modules, from weft/layers.txt.
#pragma once

#include <map>
#include <set>

#include "tests/meta/repository_support.h"

namespace weft::meta {

// Module -> modules that it may include besides itself.
using Layers = std::map<std::string, std::set<std::string>, std::less<>>;

Layers parse_layers(std::string_view text);

// A line may name only modules of earlier lines, so that no cycle exists.
Complaints order_complaints(std::string_view layers_text);

// Module of a path below weft/ ("exec/real/lanes.h"): the longest folder that is one. Empty: none.
std::string module_of(const Layers& layers, std::string_view path);

// Violations by the includes of a file of weft/. Modules include only what their layer allows. No
// file outside a backend's folder (mpi, cpu, ...) includes it. A vendor's headers appear only in
// the folder that wraps the vendor.
Complaints include_complaints(const Layers& layers, const TextFile& file);

}  // namespace weft::meta
