// The parts of a piece, in forward order, each after the one before it: a function of the config.
//
//   attention   norm [gather] qkv [heads arrange] [ring or keys] core [tokens] proj [scatter] add
//   mlp         norm [gather] fc1 act fc2 [scatter] add
//   shared      [gather] fc1 fc2 [scatter] [gate]      fc1 with the activation
//   experts     fc1 act fc2
//   embed       lookup [scatter]
//   head        norm [gather] logits [sums] loss
//
// Under tensor parallelism a rank has a share of the tokens (sequence parallelism) but between
// gather and scatter, where it has all of them and a share of the products: `gather` collects the
// tokens of the group, `scatter` sums what each rank made of them and leaves each its share. Going
// back they change roles. Embedding and head have all tokens there and a share of the vocabulary:
// `sums` exchanges what a rank's logits sum up to, from which every rank knows the loss.
//
// Under context parallelism (derive/context_sharing.h) `heads` and `tokens` exchange heads for
// tokens and back, with what came put in order between; `keys` gathers keys and values, or `ring`
// brings those of one other rank a step: then ring and core have a node a step, ring#1 to ring#n-1
// and core#0 to core#n-1. Where core runs again, it is one node behind all of them.
#pragma once

#include <vector>

#include "weft/config/model_config.h"
#include "weft/schedule/node.h"

namespace weft::schedule {

// None: it has no parts.
std::vector<Part> parts_of(const config::ModelConfig& model, Piece piece, int layer);

}  // namespace weft::schedule
