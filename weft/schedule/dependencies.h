// Dependencies of a node, derived from the anatomy.
#pragma once

#include <vector>

#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Nodes that must end before `node` starts, from the anatomy alone. Some may follow from others;
// `micro_batches`: per step.
std::vector<Node> required(const Anatomy& anatomy,
                           const Node& node,
                           int micro_batches,
                           StepKind kind);

// True if a node that requires `need` writes memory that `need` uses; false if it reads what `need`
// makes.
bool overwrites_memory_of(const Node& node, const Node& need);

// True if a weight gradient is the first of its weights in a step; it assigns, later ones add. It
// is that of the first micro-batch and slice in every order: the weight gradients of a weight must
// run in sequence.
bool begins_gradient(const Node& node);

// True if a weight gradient may run later than its input gradient. False for router, norms,
// embedding and head, and for the experts' second product if rows would be held for it.
bool may_be_delayed(const TokenFlow& flow, const Node& node);
// True for the weight gradient that frees memory for the rank's peak backward: the second product
// of the last dense feed-forward of a chunk. It runs ahead of its turn, before that backward. It
// frees the bytes that the backward needs beyond those it frees itself.
bool frees_memory_for_backward(const Anatomy& anatomy, const Node& node);
// delay_holds_rows: true for the experts' second product if its delay would hold rows.
// gradient_returns_rows: true for the part whose input gradient sends the rows away.
bool delay_holds_rows(const TokenFlow& flow, const PieceName& name);
bool gradient_returns_rows(const PieceName& name);

// Forward nodes that read the output of a recomputed or offloaded node, which is the first entry.
// The output is dropped after all of them have been issued. The last piece of a layer is read by
// the next layer of its chunk.
std::vector<Node> forward_readers(const Anatomy& anatomy, const Node& node);
// False: no forward_readers() of the piece, in that layer, include the forward node.
bool may_read(const Anatomy& anatomy, const Node& forward, const PieceAnatomy& piece, int layer);

// Lane of a node.
Lane lane_of(const Anatomy& anatomy, const Node& node);

}  // namespace weft::schedule
