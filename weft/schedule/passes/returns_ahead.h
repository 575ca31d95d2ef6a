// Moves copies from host memory as early as memory allows: a temporarily slow link has more than
// one layer's time.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/passes/rewrite.h"

namespace weft::schedule {

// Moves every I node forward, by up to a few layers, past entries with room for its bytes. No node
// has more memory beside it than its kind (piece, part and direction) had at most in `order`.
// Buffers within a node are equal for its kind, so no peak grows. `load`: per micro-batch.
NamedEntries bring_ahead(const NamedEntries& order,
                         const Anatomy& offloading,
                         int micro_batches,
                         const Load& load);

}  // namespace weft::schedule
