// Copies from the host's memory stand as early as memory allows, so that a link that is slow for a
// while has more than the time of one layer.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {

// A training order in which every I node is moved forward, by up to a few layers, past entries that
// have room for what it brings: beside no node there is more than beside the node of its kind
// (piece, part and direction) that had the most beside it in `order`. Buffers that live inside a
// node are those of its kind, so that no peak grows. `load`: what a micro-batch brings.
NamedEntries bring_ahead(const NamedEntries& order,
                         const Anatomy& offloading,
                         int micro_batches,
                         const Load& load);

}  // namespace weft::schedule
