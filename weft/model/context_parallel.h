// Attention over sequences that context-parallel ranks share (derive/context_sharing.h): what
// stands in the place of its core. It is the same for both kinds of attention, which hand over
// queries, keys and values and get their gradients back.
//
//   heads    ranks exchange heads for tokens             where head_ranks > 1
//   arrange  what came, in the order of the sequences    the same
//   ring#i   keys and values of the rank i before        KeyExchange::Ring, from step 1 on
//   keys     keys and values of all ranks                KeyExchange::Gather
//   core#i   attention over those keys                   one step, or as many as the ring has ranks
//   tokens   tokens for heads again                      where head_ranks > 1
//
// Functions named after an exchange communicate and do nothing else. Of a ring's keys a rank's
// queries see: its own causally (step 0: its two chunks one behind the other are in order); of a
// rank before it all of its queries the front chunk; of a rank behind it the queries of its back
// chunk all of them. Partial outputs are merged in the order of the steps, in fp32; gradients of
// keys go home each on its own, and are summed there in fp32, in one order.
//
// Suffixes: T tokens of the rank (of head_ranks ranks, from `arrange` on), Q, X = K + V and O
// columns of queries, of keys and values side by side, and of the output (of a share of the heads).
#pragma once

#include <vector>

#include "weft/comm/communicator.h"
#include "weft/derive/context_sharing.h"
#include "weft/model/context.h"

namespace weft::model {

// What meets in attention, or its gradients.
struct Attended {
  Tensor q_TQ, k_TK, v_TV;
};

struct ContextSharing {
  derive::AttentionSharing by;
  std::int64_t key_rank = 0;           // among those that exchange keys
  kernels::AttentionShape shape = {};  // of the rank's own tokens, all heads
};

// Between forward and input gradient of one micro-batch.
struct ContextState {
  Tensor sent, received;      // heads on their way, to attention
  Tensor o_sent, o_received;  // and from it
  Tensor q_TQ, kv_TX;
  std::vector<Tensor> kv_steps;  // of other ranks; one, of all ranks, where they are gathered
  Tensor sum_TO, lse_HT;         // of the steps so far, fp32
  Tensor o_TO, do_TO;
  Tensor dq_TQ, dkv_TX;            // fp32 where several steps are summed
  std::vector<Tensor> dkv_steps;   // for other ranks, by step
  std::vector<Tensor> dkv_others;  // from other ranks, by step
};

// Takes over what attention meets; `attended` may be dropped.
void context_begin(const Context&, const ContextSharing&, ContextState&, const Attended& attended);
void context_heads_forward(const Context&, ContextState&, comm::Communicator& heads);
void context_arrange_forward(const Context&, const ContextSharing&, ContextState&);
void context_ring_forward(const Context&, ContextState&, comm::Communicator& ring, int step);
void context_keys_forward(const Context&, ContextState&, comm::Communicator& others);
void context_core_forward(const Context&, const ContextSharing&, ContextState&, int step);
// Behind the last step, for `tokens`.
void context_send_output(const Context&, const ContextSharing&, ContextState&);
void context_tokens_forward(const Context&, ContextState&, comm::Communicator& heads);
// The output of the rank's own tokens, of all heads.
Tensor context_end(const Context&, const ContextSharing&, ContextState&);

// The same way back.
void context_end_dgrad(const Context&, const ContextSharing&, ContextState&, Tensor do_TO);
void context_tokens_dgrad(const Context&, ContextState&, comm::Communicator& heads);
void context_core_dgrad(const Context&, const ContextSharing&, ContextState&, int step);
void context_keys_dgrad(const Context&, ContextState&, comm::Communicator& others);
void context_ring_dgrad(const Context&, ContextState&, comm::Communicator& ring, int step);
void context_arrange_dgrad(const Context&, const ContextSharing&, ContextState&);
void context_heads_dgrad(const Context&, ContextState&, comm::Communicator& heads);
// The rank's own, for whose gradients the last one wants memory.
std::int64_t context_tokens(const ContextSharing&, const ContextState&);
void context_begin_dgrad(const Context&,
                         const ContextSharing&,
                         ContextState&,
                         const Attended& gradients);

// What an exchange of keys brought, for the core step that reads it.
void drop_context_keys(ContextState&, int step);

// What context_begin takes over, or `arrange` makes of it; and what core makes.
std::vector<Tensor*> attended_of_context(ContextState&);
std::vector<Tensor*> made_by_context_core(ContextState&);

}  // namespace weft::model
