// Widths from which blocks are declared: plain numbers of one model, without a config.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "weft/config/enums.h"

namespace weft::block {

// Numbers common to all blocks of a model.
struct Stream {
  std::int64_t hidden = 0;
  std::int64_t sequence = 0;
  std::int64_t norm_weights = 1;   // weights of a norm per channel: LayerNorm adds a bias
  bool has_biases = false;         // every product adds a bias
  std::int64_t element_bytes = 2;  // per weight and activation
  std::int64_t tp = 1;             // ranks that share the products of a layer
};

// Number of tokens that a query sees; nullopt: the sequence.
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
  auto operator<=>(const AttentionSharing&) const = default;
};

// Heads with grouped keys and values (GQA).
struct GroupedHeads {
  std::int64_t heads = 0, groups = 0, channels = 0;
  config::QkNorm norm = config::QkNorm::None;
  bool has_gate = false;        // the output has a gate with the queries' width
  bool has_input_bias = false;  // queries, keys and values have a bias
  bool has_sinks = false;       // a learned logit per head
  Window window = std::nullopt;

  std::int64_t queries() const { return heads * channels; }
  std::int64_t keys() const { return groups * channels; }
  // Heads of one tensor-parallel rank. With fewer key/value heads than ranks, ranks share heads.
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
  std::int64_t rank = 0;                                  // compressed keys and values
  // channels of a query or key head without and with rotation
  std::int64_t unturned = 0, turned = 0;
  std::int64_t value = 0;  // channels of a value head

  std::int64_t head() const { return unturned + turned; }
  std::int64_t queries() const { return heads * head(); }
  std::int64_t values() const { return heads * value; }
  std::int64_t compressed() const { return rank + turned; }
  // Heads of one tensor-parallel rank.
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
  std::int64_t convolution = 0;  // length in tokens

  std::int64_t keys() const { return key_heads * key_channels; }
  std::int64_t values() const { return value_heads * value_channels; }
};

struct FeedForward {
  std::int64_t width = 0;
  bool is_gated = true;  // two products feed the activation

  std::int64_t first_products() const { return is_gated ? 2 : 1; }
};

struct Experts {
  std::int64_t count = 0, chosen = 0;  // per layer; per token
  std::int64_t local = 0;              // per rank
  std::int64_t shards = 1;             // ranks that share each expert
  FeedForward each = {};
  std::optional<std::int64_t> latent = std::nullopt;  // width of their input; nullopt: the stream's
  bool has_balance_bias = false;  // the router has a bias, moved by load balancing and not trained
};

struct Vocabulary {
  std::int64_t count = 0;
  std::int64_t padded = 0;     // divisible by tensor-parallel ranks
  std::int64_t positions = 0;  // learned positions; 0: none
  bool is_tied = false;        // the head reads the embedding's table
};

}  // namespace weft::block
