// Work shared by context-parallel ranks: the tokens of every sequence, and attention over them.
#pragma once

#include <cstdint>

#include "weft/block/widths.h"
#include "weft/config/model_config.h"

namespace weft::derive {

// A sequence is cut into 2 * ranks chunks. A rank has one chunk from the front and its mirror from
// the end: causal attention costs all ranks the same. Its rows are these chunks, the front one
// first.
struct SequenceShare {
  std::int64_t length = 1;
  std::int64_t ranks = 1, rank = 0;

  bool is_whole() const { return ranks == 1; }
  std::int64_t rows() const { return length / ranks; }
  std::int64_t chunk() const { return length / (2 * ranks); }
  // First tokens of the two chunks.
  std::int64_t front() const { return rank * chunk(); }
  std::int64_t back() const { return (2 * ranks - 1 - rank) * chunk(); }
};

using block::AttentionSharing;
using block::KeyExchange;

AttentionSharing attention_sharing(const config::ModelConfig& model, std::int64_t layer);
// True if, in some layer, ranks exchange heads, or pass keys around a ring; for any config.
bool exchanges_heads(const config::ModelConfig& model);
bool passes_keys_on(const config::ModelConfig& model);

}  // namespace weft::derive
