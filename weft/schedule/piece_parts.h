// Parts of a piece in forward order, each depending on the one before it; a function of the config.
//
//   attention   norm [gather] qkv [heads arrange] [ring or keys] core [tokens] proj [scatter] add
//   mlp         norm [gather] fc1 act fc2 [scatter] add
//   shared      [gather] fc1 fc2 [scatter] [gate]      fc1 with the activation
//   experts     fc1 act fc2
//   embed       lookup [scatter]
//   head        norm [gather] logits [sums] loss
//
// Under tensor parallelism a rank has a share of the tokens (sequence parallelism), except between
// gather and scatter: there it has all tokens and a share of the products. `gather` collects the
// group's tokens; `scatter` sums the ranks' results and leaves each its share. Their gradients swap
// roles. Embedding and head have all tokens there and a share of the vocabulary: `sums` exchanges
// the sums of a rank's logits, from which every rank computes the loss.
//
// Under context parallelism (derive/context_sharing.h), `heads` and `tokens` exchange heads for
// tokens and back, with a reordering between. `keys` gathers keys and values, or `ring` brings
// those of one other rank per step. Ring and core then have a node per step: ring#1 to ring#n-1,
// and core#0 to core#n-1. A recomputed core is a single node after all of them.
#pragma once

#include <vector>

#include "weft/config/model_config.h"
#include "weft/schedule/node.h"

namespace weft::schedule {

// Empty: no parts.
std::vector<Part> parts_of(const config::ModelConfig& model, Piece piece, int layer);

}  // namespace weft::schedule
