// Memory and wire bytes of a piece, as linear functions of a load.
#pragma once

#include <optional>

#include "weft/config/model_config.h"
#include "weft/schedule/anatomy.h"

namespace weft::schedule {

struct PieceBytes {
  // Allocated by the forward and held until the backward no longer needs it. Rows: received for the
  // rank's experts. For a sliced piece: per node, with its share of tokens and rows.
  Bytes kept = {};
  // part of `kept` in the residual stream: input of the next piece that reads it
  Bytes output = {};
  Bytes remade = {};  // part of `kept` that recomputation drops and makes again
  // Part of `remade` that an offload copies; nullopt: all.
  std::optional<Bytes> travels = std::nullopt;
  // To other ranks, per node. Rows: those that leave the rank.
  Bytes sent_forward = {}, sent_backward = {};
  std::optional<Bytes> sent_again = std::nullopt;  // when recomputed; nullopt: as in the forward
};

// Runs of a micro-batch's tokens whose rows are counted over the ranks that share them: the whole
// for aux_loss, each sequence for seq_aux_loss.
std::int64_t tallied_runs(const config::ModelConfig& model, const TokenFlow& flow);

// Bytes of a piece, the sum of its parts' bytes, or of a part. `layer`: for pieces of a layer.
PieceBytes bytes_of(const config::ModelConfig& model,
                    const TokenFlow& flow,
                    const PieceName& name,
                    int layer);

}  // namespace weft::schedule
