// Attention over sequences that context-parallel ranks share (derive/context_sharing.h); it
// replaces the core. Both kinds of attention hand over queries, keys and values, and get their
// gradients back.
//
//   heads    ranks exchange heads for tokens             if head_ranks > 1
//   arrange  received rows, in sequence order            if head_ranks > 1
//   ring#i   keys and values of the rank i before        KeyExchange::Ring, from step 1 on
//   keys     keys and values of all ranks                KeyExchange::Gather
//   core#i   attention over those keys                   one step, or one per rank of the ring
//   tokens   ranks exchange tokens for heads             if head_ranks > 1
//
// Functions named after an exchange only communicate. In a ring, queries see these keys. Own keys:
// causally; in step 0 the rank's two chunks, concatenated, are in order. Keys of an earlier rank:
// all queries see the front chunk. Keys of a later rank: queries of the back chunk see all. Partial
// outputs are merged in step order, in fp32. Gradients of keys return to their rank one by one and
// are summed there in fp32, in one order.
//
// Suffixes: T tokens of the rank (of head_ranks ranks, from `arrange` on); Q columns of queries; X
// = K + V columns of keys beside values; O columns of the output (of a share of the heads).
#pragma once

#include <vector>

#include "weft/comm/communicator.h"
#include "weft/derive/context_sharing.h"
#include "weft/model/context.h"

namespace weft::model {

// Inputs of attention, or their gradients.
struct Attended {
  Tensor q_TQ, k_TK, v_TV;
};

struct ContextSharing {
  derive::AttentionSharing by;
  std::int64_t key_rank = 0;           // rank among those that exchange keys
  kernels::AttentionShape shape = {};  // rank's own tokens, all heads
};

// State between forward and input gradient of one micro-batch.
struct ContextState {
  Tensor sent, received;      // heads in flight, before attention
  Tensor o_sent, o_received;  // heads in flight, after attention
  Tensor q_TQ, kv_TX;
  // keys of other ranks by step; a single entry with all ranks' keys if they are gathered
  std::vector<Tensor> kv_steps;
  Tensor sum_TO, lse_HT;  // over the steps so far, fp32
  Tensor o_TO, do_TO;
  Tensor dq_TQ, dkv_TX;            // fp32 if several steps are summed
  std::vector<Tensor> dkv_steps;   // for other ranks, by step
  std::vector<Tensor> dkv_others;  // from other ranks, by step
};

// Takes over the inputs of attention; `attended` may be dropped.
void context_begin(const Context&, const ContextSharing&, ContextState&, const Attended& attended);
void context_heads_forward(const Context&, ContextState&, comm::Communicator& heads);
void context_arrange_forward(const Context&, const ContextSharing&, ContextState&);
void context_ring_forward(const Context&, ContextState&, comm::Communicator& ring, int step);
void context_keys_forward(const Context&, ContextState&, comm::Communicator& others);
void context_core_forward(const Context&, const ContextSharing&, ContextState&, int step);
// Called after the last step, for `tokens`.
void context_send_output(const Context&, const ContextSharing&, ContextState&);
void context_tokens_forward(const Context&, ContextState&, comm::Communicator& heads);
// Output of the rank's own tokens, all heads.
Tensor context_end(const Context&, const ContextSharing&, ContextState&);

// Backward, in reverse order.
void context_end_dgrad(const Context&, const ContextSharing&, ContextState&, Tensor do_TO);
void context_tokens_dgrad(const Context&, ContextState&, comm::Communicator& heads);
void context_core_dgrad(const Context&, const ContextSharing&, ContextState&, int step);
void context_keys_dgrad(const Context&, ContextState&, comm::Communicator& others);
void context_ring_dgrad(const Context&, ContextState&, comm::Communicator& ring, int step);
void context_arrange_dgrad(const Context&, const ContextSharing&, ContextState&);
void context_heads_dgrad(const Context&, ContextState&, comm::Communicator& heads);
// Number of the rank's own tokens; context_begin_dgrad takes memory for their gradients.
std::int64_t context_tokens(const ContextSharing&, const ContextState&);
void context_begin_dgrad(const Context&,
                         const ContextSharing&,
                         ContextState&,
                         const Attended& gradients);

// Drops received keys after the core step that read them.
void drop_context_keys(ContextState&, int step);

// attended_of_context: inputs that context_begin takes over, or their rearranged form.
// made_by_context_core: core's outputs.
std::vector<Tensor*> attended_of_context(ContextState&);
std::vector<Tensor*> made_by_context_core(ContextState&);

}  // namespace weft::model
