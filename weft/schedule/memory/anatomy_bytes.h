// Memory and wire bytes of a piece, as linear functions of a load.
#pragma once

#include <optional>

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

struct PieceBytes {
  // Allocated by its forward and held until the backward is done with it. Rows: those the rank's
  // experts receive. Of a sliced piece, by each node with its share of tokens and rows.
  Bytes kept = {};
  Bytes output = {};  // of it, the residual stream: the input of the next piece that reads it
  Bytes remade = {};  // of it, what a recomputation drops and makes again
  // Of that, what goes to the host's memory, unless all.
  std::optional<Bytes> travels = std::nullopt;
  // To other ranks by one node. Rows: those that leave the rank.
  Bytes sent_forward = {}, sent_backward = {};
  std::optional<Bytes> sent_again = std::nullopt;  // where it runs again, unless as forward
};

// A piece has the bytes of its parts.
// Runs of a micro-batch's tokens whose rows are counted over the ranks that share them: the whole
// for aux_loss, each sequence for seq_aux_loss.
std::int64_t tallied_runs(const config::ModelConfig& model, const TokenFlow& flow);

// `layer`: of a piece of one.
PieceBytes bytes_of(const config::ModelConfig& model,
                    const TokenFlow& flow,
                    const PieceName& name,
                    int layer);

}  // namespace weft::schedule
