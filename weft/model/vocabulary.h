// How tensor-parallel ranks share the vocabulary: each has the rows of some ids, of the embedding
// and of the head.
//
// The parts are equal but for the last, where the vocabulary is padded (model.should_pad_vocab):
// padding is only where rows would be, so that it has no weights, no logits and no gradients.
#pragma once

#include "weft/derive/axis_split.h"
#include "weft/kernels/kernels.h"

namespace weft::model {

// The ids of the other tensor-parallel ranks.
kernels::OtherIds other_ids(const config::ModelConfig& config, const derive::AxisRanks& ranks);

}  // namespace weft::model
