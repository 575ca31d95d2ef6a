// Work shared by context-parallel ranks: the tokens of every sequence, and attention over them.
#pragma once

#include <cstdint>

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

// How the ranks of a layer obtain the keys of other ranks.
enum class KeyExchange {
  None,    // no other keys are needed
  Ring,    // from one other rank per step
  Gather,  // from all ranks at once
};

// Two levels of sharing. Groups of head_ranks exchange heads for tokens: each rank gets the tokens
// of its group and a share of the heads. The groups, each taken as one rank, share tokens and
// exchange keys.
struct AttentionSharing {
  std::int64_t head_ranks = 1;
  std::int64_t key_ranks = 1;
  KeyExchange keys = KeyExchange::None;

  bool is_shared() const { return head_ranks * key_ranks > 1; }
};
AttentionSharing attention_sharing(const config::ModelConfig& model, std::int64_t layer);
// True if, in some layer, ranks exchange heads, or pass keys around a ring; for any config.
bool exchanges_heads(const config::ModelConfig& model);
bool passes_keys_on(const config::ModelConfig& model);

}  // namespace weft::derive
