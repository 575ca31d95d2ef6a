// Blocks that move tokens to their experts and back: counts, rows, and sums for load balancing.
#pragma once

#include "weft/block/block.h"
#include "weft/config/enums.h"

namespace weft::block {

// Routes of the rows of a MoE layer, as its ranks see them.
struct Dispatch {
  config::Dispatcher dispatcher = config::Dispatcher::AllToAll;
  std::int64_t ranks = 1;  // ranks that hold the experts of a layer
  // Machines that rows cross to before they are forwarded; equal to the ranks: one hop.
  std::int64_t machines = 1;
  std::int64_t experts = 0;           // shards of experts, over all ranks
  std::int64_t chosen = 1;            // shards that a token goes to
  std::int64_t shards = 1;            // shards per expert
  std::int64_t slices = 1;            // slices of a micro-batch's tokens
  bool is_padded = false;             // every expert takes a fixed number of rows
  bool is_counted_on_device = false;  // the host never learns the number of arriving rows

  std::int64_t per_machine() const { return ranks / machines; }
  std::int64_t peers() const { return ranks - 1; }
  bool is_flex() const { return dispatcher == config::Dispatcher::Flex; }
  bool is_gathered() const { return dispatcher == config::Dispatcher::AllGather; }
  // True if a single rank's experts read the rows as permuted, with room for dropped slots.
  bool reads_as_permuted() const {
    return dispatcher == config::Dispatcher::AllToAll && ranks == 1 && !is_padded;
  }
};

// Row counts for the load-balancing losses.
struct RowTally {
  std::int64_t experts = 0;   // experts with counted rows
  std::int64_t replicas = 1;  // ranks with other tokens
  std::int64_t sharers = 1;   // among the replicas, ranks with other tokens of the same micro-batch
  std::int64_t runs = 0;  // counts over the sharers: of a micro-batch, and of each of its sequences
  bool is_global = false;  // also counted over the replicas
};

// Bytes that the router keeps about the rows' destinations.
Bytes routed_bytes(const Dispatch& dispatch);
// Input of the experts: the rows, which can be resent; and the places of received rows by expert.
Bytes row_bytes(const Stream& stream, const Dispatch& dispatch);
Bytes arranged_bytes(const Dispatch& dispatch);

// Exchange of row counts between ranks.
Block row_counts(const Dispatch& dispatch);
Block row_sizes();
// Sums of every expert's rows, over all replicas or over the ranks that share a micro-batch.
Block balance(const RowTally& tally);
Block tally(const RowTally& tally);
// Rows into wire order; to their experts; back; and merged per token.
Block permute();
Block dispatch(const Stream& stream, const Dispatch& dispatch);
Block combine(const Stream& stream, const Dispatch& dispatch);
Block merge(const Stream& stream);

// Residual stream between pipeline stages.
Block send(const Stream& stream);
Block receive(const Stream& stream);

}  // namespace weft::block
