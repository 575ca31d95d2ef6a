// The widths from which blocks are declared: plain numbers of one model, without a config.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "weft/config/enums.h"

namespace weft::block {

// What all blocks of a model share.
struct Stream {
  std::int64_t hidden = 0;
  std::int64_t sequence = 0;
  std::int64_t norm_weights = 1;   // numbers of a norm for each channel: LayerNorm adds a bias
  bool has_biases = false;         // every product adds one
  std::int64_t element_bytes = 2;  // of weights and activations
  std::int64_t tp = 1;             // ranks that share the products of a layer
};

// Tokens that a query looks at, where that is a window of the sequence.
using Window = std::optional<std::int64_t>;

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

// Heads with grouped keys and values (GQA).
struct GroupedHeads {
  std::int64_t heads = 0, groups = 0, channels = 0;
  config::QkNorm norm = config::QkNorm::None;
  bool has_gate = false;        // the output is gated, by as many channels as queries have
  bool has_input_bias = false;  // queries, keys and values add one
  bool has_sinks = false;       // a learned logit a head
  Window window = std::nullopt;

  std::int64_t queries() const { return heads * channels; }
  std::int64_t keys() const { return groups * channels; }
  // Of one tensor-parallel rank. Several ranks hold a key and value head where heads are fewer.
  GroupedHeads local(std::int64_t tp) const {
    GroupedHeads own = *this;
    own.heads /= tp;
    own.groups = std::max<std::int64_t>(1, groups / tp);
    return own;
  }
};

// Compressed queries, keys and values (MLA).
struct LatentHeads {
  std::int64_t heads = 0;
  std::optional<std::int64_t> query_rank = std::nullopt;  // nullopt: queries are not compressed
  std::int64_t rank = 0;                                  // of keys and values
  std::int64_t unturned = 0, turned = 0;  // channels of a query or key head: turned by its position
  std::int64_t value = 0;                 // channels of a value head

  std::int64_t head() const { return unturned + turned; }
  std::int64_t queries() const { return heads * head(); }
  std::int64_t values() const { return heads * value; }
  std::int64_t compressed() const { return rank + turned; }
  // Of one tensor-parallel rank.
  LatentHeads local(std::int64_t tp) const {
    LatentHeads own = *this;
    own.heads /= tp;
    return own;
  }
};

// Gated delta net: linear attention.
struct DeltaHeads {
  std::int64_t key_heads = 0, key_channels = 0;
  std::int64_t value_heads = 0, value_channels = 0;
  std::int64_t convolution = 0;  // tokens

  std::int64_t keys() const { return key_heads * key_channels; }
  std::int64_t values() const { return value_heads * value_channels; }
};

struct FeedForward {
  std::int64_t width = 0;
  bool is_gated = true;  // two products make what the activation takes

  std::int64_t first_products() const { return is_gated ? 2 : 1; }
};

struct Experts {
  std::int64_t count = 0, chosen = 0;  // of a layer, of a token
  std::int64_t local = 0;              // of a rank
  std::int64_t shards = 1;             // ranks that share each expert
  FeedForward each = {};
  std::optional<std::int64_t> latent = std::nullopt;  // width of what they read, unless the stream
  bool has_balance_bias = false;  // the router's, which balance moves and nothing trains
};

struct Vocabulary {
  std::int64_t count = 0;
  std::int64_t padded = 0;     // to what tensor-parallel ranks can divide
  std::int64_t positions = 0;  // learned; 0: none
  bool is_tied = false;        // the head reads the embedding's table
};

}  // namespace weft::block
