// Input of a step: tokens and labels of each micro-batch of this rank, and optionally the routers'
// choices.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "weft/derive/context_sharing.h"

namespace weft::train {

struct MicroBatch {
  std::vector<std::int32_t> ids;     // sequences x sequence length, row by row
  std::vector<std::int32_t> labels;  // equal shape; -1: no label
  // Fixed router choices of each layer, (tokens x k), ascending per token. A dense layer has none.
  // Empty: the routers choose.
  std::vector<std::vector<std::int32_t>> experts;
};

using Batch = std::vector<MicroBatch>;

// Sequences of the step for one rank. Micro-batch m of data-parallel rank r is global micro-batch m
// * dp + r: every layout cuts the same sequences into the same micro-batches.
struct Share {
  std::int64_t micro_batch_size = 1;
  std::int64_t micro_batches = 1;  // per rank
  std::int64_t dp = 1;
  std::int64_t dp_rank = 0;

  std::int64_t first_sequence(std::int64_t micro_batch) const {
    return (micro_batch * dp + dp_rank) * micro_batch_size;
  }
};

// A context-parallel rank's part of a micro-batch: its share of each sequence's tokens, with their
// labels and choices. The label of a token is the sequence's next token, on whichever rank that
// lies.
MicroBatch tokens_of(const MicroBatch& whole, const derive::SequenceShare& share);

// read(sequence, tokens) fills sequence_length + 1 tokens: inputs, and labels shifted by one.
using ReadSequence = std::function<void(std::int64_t sequence, std::span<std::int32_t> tokens)>;
Batch read_batch(const Share& share, std::int64_t sequence_length, const ReadSequence& read);

// Valid tokens with labels, for steps with irrelevant numbers.
Batch blank_batch(const Share& share, std::int64_t sequence_length);

}  // namespace weft::train
