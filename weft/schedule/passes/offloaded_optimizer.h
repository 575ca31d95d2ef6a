// Optimizer state that lies in host memory (optimizer.optimizer_cpu_offload) is changed there,
// bucket by bucket: gradients travel to the host, its cores change state and weights, the weights
// travel back. Each way has its copy lane, and the host's work is on the host lane: the thread that
// issues does it, with others to help.
//
//   one by one   copy     d0        d1        d2
//                host        u0        u1        u2
//                copy_in        up0       up1       up2
//
//   overlapped   copy     d0 d1 d2 d3
//                host        u0 u1 u2 u3
//                copy_in        up0 up1 up2 up3
//
// A bucket's memory between device and host is one of two slots (or one): a download waits for the
// update that read its slot last, and an update for the upload that did. Every update waits for
// `clip`, with clipping or without: a step that is not finite changes nothing. Overlapped, the
// first downloads stand before `norm`: they wait only for their own gradients, and run under the
// rest of the backward.
#pragma once

#include "weft/derive/memory/optimizer_offload.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// The anatomy with these nodes. Gathers at the end of a step wait for the uploads of their bucket.
// After with_gathers_ahead.
Anatomy with_offloaded_optimizer(Anatomy anatomy, const derive::OptimizerOffload& offload);

// The order of such an anatomy, from one without.
Graph place_offloaded(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
