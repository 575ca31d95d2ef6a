// When pipeline neighbours exchange. In the plain order a chunk's input is received just before its
// turn and its output sent just after.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// When the first receive of a lane is posted: where its turn begins, or with the step
// (model.overlap_p2p_comm_warmup_flush), so that what comes while the pipeline fills comes under
// compute too; its memory is taken as long.
enum class FirstReceive { InItsPlace, AtOnce };

// comm_overlap.overlap_p2p_comm: each receive is posted as soon as the one before it on its lane
// has been taken up, so that what arrives does so under compute, also while the pipeline drains;
// nobody waits for a send.
Graph prefetch_receives(const Graph& graph,
                        const Anatomy& anatomy,
                        int micro_batches,
                        FirstReceive first);

// Batched: between two rounds (see turns.h) the sends of the one and the receives of the next are
// one exchange, and compute goes on when all of it is over.
Graph batch_exchanges(const Graph& graph, const Anatomy& anatomy, const PipelineShape& shape);

}  // namespace weft::schedule
