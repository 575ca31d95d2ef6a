// What context-parallel ranks share: the tokens of every sequence, and the attention over them.
#pragma once

#include <cstdint>

#include "weft/config/model_config.h"

namespace weft::derive {

// A sequence is cut into 2 * ranks chunks. A rank has one from the front and the one as far from
// the end, so that causal attention costs all ranks the same: those are its rows, the front one
// first.
struct SequenceShare {
  std::int64_t length = 1;
  std::int64_t ranks = 1, rank = 0;

  bool is_whole() const { return ranks == 1; }
  std::int64_t rows() const { return length / ranks; }
  std::int64_t chunk() const { return length / (2 * ranks); }
  // Where they begin in the sequence.
  std::int64_t front() const { return rank * chunk(); }
  std::int64_t back() const { return (2 * ranks - 1 - rank) * chunk(); }
};

// How the ranks of a layer come to the keys that their queries look at.
enum class KeyExchange {
  None,    // they have them
  Ring,    // from one other rank a step
  Gather,  // from all at once
};

// First ranks that exchange heads for tokens: each has the tokens of all of them and a share of the
// heads. With their ranks taken as one, the rest share tokens: they exchange keys.
struct AttentionSharing {
  std::int64_t head_ranks = 1;
  std::int64_t key_ranks = 1;
  KeyExchange keys = KeyExchange::None;

  bool is_shared() const { return head_ranks * key_ranks > 1; }
};
AttentionSharing attention_sharing(const config::ModelConfig& model, std::int64_t layer);
// Whether ranks exchange heads, or keys around a ring, in some layer; of any config.
bool exchanges_heads(const config::ModelConfig& model);
bool passes_keys_on(const config::ModelConfig& model);

}  // namespace weft::derive
