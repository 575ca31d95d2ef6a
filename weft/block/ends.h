// Ends of a model: the embedding, the head, and multi-token prediction.
#pragma once

#include "weft/block/block.h"

namespace weft::block {

// lookup [scatter]
Block embedding(const Stream& stream, const Vocabulary& vocabulary);

// norm [gather] logits [sums] loss
//
// A rank's logits cover a share of the vocabulary: `sums` exchanges their sums, from which every
// rank computes the loss. A kept logit takes `logit_bytes`.
Block head(const Stream& stream, const Vocabulary& vocabulary, std::int64_t logit_bytes = kFp32);

// Addition of a multi-token prediction layer to a layer and a head: norms of its two input streams
// and of its output, and the product between.
Block token_ahead(const Stream& stream);

// Rows of a token table, split over tensor-parallel ranks.
AxisSplit table_split(const Vocabulary& vocabulary);

}  // namespace weft::block
