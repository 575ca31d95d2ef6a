// Times of exchanges between pipeline neighbours. In the plain order, a chunk's input is received
// just before its turn, and its output sent just after.
#pragma once

#include "weft/schedule/anatomy.h"
#include "weft/schedule/builders/turns.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Post of a lane's first receive. InItsPlace: where its turn begins. AtOnce: with the step
// (model.overlap_p2p_comm_warmup_flush), so that transfers during warm-up also travel under
// compute; this holds the memory longer.
enum class FirstReceive { InItsPlace, AtOnce };

// comm_overlap.overlap_p2p_comm: posts each receive as soon as its predecessor on the lane has been
// consumed. Data then arrives under compute, also while the pipeline drains; no node waits for a
// send.
Graph prefetch_receives(const Graph& graph,
                        const Anatomy& anatomy,
                        int micro_batches,
                        FirstReceive first);

// Batched exchange: between two rounds (builders/turns.h), the sends of the one and the receives of
// the next form one exchange. Compute waits for the whole exchange.
Graph batch_exchanges(const Graph& graph, const Anatomy& anatomy, const PipelineShape& shape);

}  // namespace weft::schedule
