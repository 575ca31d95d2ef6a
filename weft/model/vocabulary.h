// Vocabulary split across tensor-parallel ranks: each has the rows of some ids, in embedding and
// head.
//
// Parts are equal except the last, if the vocabulary is padded (model.should_pad_vocab). Padding is
// virtual: it has no weights, logits or gradients.
#pragma once

#include "weft/derive/axis_split.h"
#include "weft/kernels/kernels.h"

namespace weft::model {

// Ids of the other tensor-parallel ranks.
kernels::OtherIds other_ids(const config::ModelConfig& config, const derive::AxisRanks& ranks);

}  // namespace weft::model
