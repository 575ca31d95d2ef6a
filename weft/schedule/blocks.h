// The blocks of every piece of a model, as the tokens of a rank flow through it.
#pragma once

#include <vector>

#include "weft/block/block.h"
#include "weft/block/dispatch.h"
#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Of a layer, in forward order, whether all of these run or not: a dense layer has no others than
// its mixer and its feed-forward.
std::vector<block::Block> blocks_of_layer(const config::ModelConfig& model,
                                          const TokenFlow& flow,
                                          int layer);
// The head, with logits as the step keeps them.
block::Block head_block(const config::ModelConfig& model, const TokenFlow& flow);

// Gives a piece, or a part of one, the bytes that its block declares for it.
void declare_bytes(const block::Block& block, PieceAnatomy& piece);

// Rows counted for the losses that balance the load.
block::RowTally row_tally(const config::ModelConfig& model, const TokenFlow& flow);

}  // namespace weft::schedule
