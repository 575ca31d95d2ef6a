// Blocks of every piece of a model, for the token flow of a rank.
#pragma once

#include <vector>

#include "weft/block/block.h"
#include "weft/block/dispatch.h"
#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Blocks of a layer: those with weights, then those that move a MoE layer's rows. The anatomy uses
// the blocks of its pieces.
std::vector<block::Block> blocks_of_layer(const config::ModelConfig& model,
                                          const TokenFlow& flow,
                                          int layer);
// Head block with the logits that the step keeps.
block::Block head_block(const config::ModelConfig& model, const TokenFlow& flow);

// Gives a piece, or a part, the bytes that its block declares.
void declare_bytes(const block::Block& block, PieceAnatomy& piece);

// Row counts for the load-balancing losses.
block::RowTally row_tally(const config::ModelConfig& model, const TokenFlow& flow);

}  // namespace weft::schedule
