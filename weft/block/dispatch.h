// What moves tokens to their experts and back: counts, rows, and what ranks sum for a balanced
// load.
#pragma once

#include "weft/block/block.h"
#include "weft/config/enums.h"

namespace weft::block {

// How the rows of a MoE layer travel, as its ranks see it.
struct Dispatch {
  config::Dispatcher dispatcher = config::Dispatcher::AllToAll;
  std::int64_t ranks = 1;  // that hold the experts of a layer
  std::int64_t machines =
      1;  // that rows cross to before they are passed on; as many as ranks: one hop
  std::int64_t experts = 0;           // shards of experts, over all ranks
  std::int64_t chosen = 1;            // of these, that a token is brought to
  std::int64_t shards = 1;            // of an expert
  std::int64_t slices = 1;            // of the tokens of a micro-batch
  bool is_padded = false;             // every expert takes as many rows as any other
  bool is_counted_on_device = false;  // no host learns how many rows arrive

  std::int64_t per_machine() const { return ranks / machines; }
  std::int64_t peers() const { return ranks - 1; }
  bool is_flex() const { return dispatcher == config::Dispatcher::Flex; }
  bool is_gathered() const { return dispatcher == config::Dispatcher::AllGather; }
  // One rank's experts read the rows as they were permuted, with room for slots that were dropped.
  bool reads_as_permuted() const {
    return dispatcher == config::Dispatcher::AllToAll && ranks == 1 && !is_padded;
  }
};

// Rows counted for the losses that balance the load.
struct RowTally {
  std::int64_t experts = 0;   // whose rows are counted
  std::int64_t replicas = 1;  // ranks with other tokens
  std::int64_t sharers = 1;   // of them, those with other tokens of the same micro-batch
  std::int64_t runs = 0;      // counted over the sharers: a micro-batch, and each of its sequences
  bool is_global = false;     // counted over the replicas too
};

// What the router keeps of where rows go.
Bytes routed_bytes(const Dispatch& dispatch);
// What the experts read: the rows, which can travel again, and by expert where they came from.
Bytes row_bytes(const Stream& stream, const Dispatch& dispatch);
Bytes arranged_bytes(const Dispatch& dispatch);

// Ranks tell each other how many rows they send.
Block row_counts(const Dispatch& dispatch);
Block row_sizes();
// Sums of the rows of every expert, over all replicas or over the ranks that share a micro-batch.
Block balance(const RowTally& tally);
Block tally(const RowTally& tally);
// Rows in the order of the wire; to their experts; back; each token's put together.
Block permute();
Block dispatch(const Stream& stream, const Dispatch& dispatch);
Block combine(const Stream& stream, const Dispatch& dispatch);
Block merge(const Stream& stream);

// The residual stream between pipeline stages.
Block send(const Stream& stream);
Block receive(const Stream& stream);

}  // namespace weft::block
