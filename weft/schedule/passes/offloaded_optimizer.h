// Optimizer state in host memory (optimizer.optimizer_cpu_offload) is updated there, bucket by
// bucket. Gradients travel to the host, its cores update state and weights, and the weights travel
// back. Each direction has a copy lane; the update is on the host lane, run by the issuing thread
// and helper threads.
//
//   one by one   copy     d0        d1        d2
//                host        u0        u1        u2
//                copy_in        up0       up1       up2
//
//   overlapped   copy     d0 d1 d2 d3
//                host        u0 u1 u2 u3
//                copy_in        up0 up1 up2 up3
//
// A bucket's buffer between device and host is one of two slots (or one). A download waits for the
// update that last read its slot, an update for the upload that did. Every update waits for `clip`,
// with or without clipping: a step that is not finite changes no state. If overlapped, the first
// downloads come before `norm`: they wait only for their own gradients and run under the rest of
// the backward.
#pragma once

#include "weft/derive/memory/optimizer_offload.h"
#include "weft/schedule/anatomy.h"
#include "weft/schedule/graph.h"

namespace weft::schedule {

// Adds these nodes to an anatomy. Gathers at the end of a step wait for the uploads of their
// bucket. Applied after with_gathers_ahead.
Anatomy with_offloaded_optimizer(Anatomy anatomy, const derive::OptimizerOffload& offload);

// Adds these nodes to an order without them.
Graph place_offloaded(const Graph& graph, const Anatomy& anatomy, int micro_batches);

}  // namespace weft::schedule
