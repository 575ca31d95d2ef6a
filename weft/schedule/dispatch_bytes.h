// What each dispatcher keeps and sends, as linear functions of a load.
#pragma once

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

// By routing, dispatch and experts, beside what they keep whoever moves the rows.
Bytes dispatch_kept_bytes(const config::ModelConfig& model, const TokenFlow& flow, Piece piece);

// By counts, dispatch or combine, to other ranks.
Bytes dispatch_sent_bytes(const config::ModelConfig& model,
                          const TokenFlow& flow,
                          Piece piece,
                          Direction direction);

}  // namespace weft::schedule
