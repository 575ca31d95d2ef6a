// The ends of a model: the embedding, the head, and what predicts several tokens ahead.
#pragma once

#include "weft/block/block.h"

namespace weft::block {

// lookup [scatter]
Block embedding(const Stream& stream, const Vocabulary& vocabulary);

// norm [gather] logits [sums] loss
//
// A rank's logits are of a share of the vocabulary: `sums` exchanges what they sum up to, from
// which every rank knows the loss. A logit is kept in `logit_bytes`.
Block head(const Stream& stream, const Vocabulary& vocabulary, std::int64_t logit_bytes = kFp32);

// What a layer of multi-token prediction has besides a layer and a head: norms of the two streams
// that it reads and of the one that it makes, and the product between.
Block token_ahead(const Stream& stream);

// Rows of a table of tokens, as tensor-parallel ranks share them.
AxisSplit table_split(const Vocabulary& vocabulary);

}  // namespace weft::block
