// Feed-forward: gate and up, or one product; an activation; down.
#pragma once

#include "weft/block/block.h"

namespace weft::block {

// Dense layer: norm [gather] fc1 act fc2 [scatter] add
Block dense_feed_forward(const Stream& stream, const FeedForward& widths);

// Experts that every token visits, as one feed-forward: [gather] fc1 fc2 [scatter] [gate]; fc1
// includes the activation. They read the output of the router's norm.
enum class SharedGate { None, Learned };
Block shared_experts(const Stream& stream, const FeedForward& widths, SharedGate gate);

}  // namespace weft::block
