// What a step reads: for each micro-batch of this rank its tokens and their labels, and where the
// routers' choice is given, that choice.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/derive/context_sharing.h"

namespace weft::train {

struct MicroBatch {
  std::vector<std::int32_t> ids;     // (sequences x sequence length), row by row
  std::vector<std::int32_t> labels;  // the same shape; -1: no label
  // Of each layer of the model (tokens x k): the experts that the router would choose, ascending
  // for each token; empty for a dense layer. No layers: the routers choose.
  std::vector<std::vector<std::int32_t>> experts;
};

using Batch = std::vector<MicroBatch>;

// Which of the step's sequences a rank takes: micro-batch m of data-parallel rank r is global
// micro-batch m * dp + r, so that every layout cuts the same sequences into the same micro-batches.
struct Share {
  std::int64_t micro_batch_size = 1;
  std::int64_t micro_batches = 1;  // of one rank
  std::int64_t dp = 1;
  std::int64_t dp_rank = 0;

  std::int64_t first_sequence(std::int64_t micro_batch) const {
    return (micro_batch * dp + dp_rank) * micro_batch_size;
  }
};

// A micro-batch as a context-parallel rank has it: of each sequence its share of the tokens, with
// their labels and choices. The label of a token is the next one of the sequence, whoever has that.
MicroBatch tokens_of(const MicroBatch& whole, const derive::SequenceShare& share);

// read(sequence, tokens) fills sequence + 1 tokens: inputs and, one further, labels.
using ReadSequence = std::function<void(std::int64_t sequence, std::span<std::int32_t> tokens)>;
Batch read_batch(const Share& share, std::int64_t sequence_length, const ReadSequence& read);

// Some token everywhere, labelled: for steps whose numbers do not count.
Batch blank_batch(const Share& share, std::int64_t sequence_length);

}  // namespace weft::train
