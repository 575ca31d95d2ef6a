// The parts of a piece, in forward order, each after the one before it: a function of the config.
//
//   attention   norm [gather] qkv core proj [scatter] add
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
#pragma once

#include <vector>

#include "weft/config/model_config.h"
#include "weft/schedule/node.h"

namespace weft::schedule {

// None: it has no parts.
std::vector<Part> parts_of(const config::ModelConfig& model, Piece piece);

}  // namespace weft::schedule
