// Offloaded data whose device memory a later layer's forward reuses.
#pragma once

#include <optional>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Layer whose forward of the same part releases an offloaded output of `layer`, and therefore waits
// for its copy: the next offloaded layer of the chunk, else the chunk's last layer with that part.
// nullopt: no later layer; the output is released when its copy is issued.
std::optional<int> releasing_layer(const Anatomy& anatomy, int layer, const PieceName& name);
// Inverse: forward node whose offloaded output this forward releases; nullopt: none.
std::optional<Node> released_by(const Anatomy& anatomy, const Node& forward);

}  // namespace weft::schedule
