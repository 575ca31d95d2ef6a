// Memory and wire bytes of a piece, as linear functions of a load.
#pragma once

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// Allocated by the piece's forward and held until the backward is done with it. Rows: those the
// rank's experts receive. Of a sliced piece, by each node with its share of tokens and rows.
Bytes kept_bytes(const config::ModelConfig& model, const TokenFlow& flow, const PieceName& name);

// Sent to other ranks by one node. Rows: those that leave the rank.
Bytes sent_bytes(const config::ModelConfig& model,
                 const TokenFlow& flow,
                 Piece piece,
                 Direction direction);

}  // namespace weft::schedule
