// Exchanges of context-parallel ranks around attention, without computation.
#include "weft/base/casts.h"
#include "weft/model/context_parallel.h"
#include "weft/model/ring_pass.h"

namespace weft::model {
namespace {

using base::at;

// Member `further` places ahead in a ring.
int member_at(const comm::Communicator& ring, int further) {
  const int size = ring.size();
  return ((ring.rank() + further) % size + size) % size;
}

// Sends each member its block of rows.
void exchange_blocks(const Context& context,
                     Tensor& received,
                     Tensor& sent,
                     comm::Communicator& heads) {
  const std::vector<std::int64_t> rows(at(heads.size()), sent.dim(0) / heads.size());
  received = context.wire(sent.shape());
  heads.all_to_all(context.stream, received, sent, rows, rows);
  sent.reset();
}

Tensor& place_of(std::vector<Tensor>& steps, int step) {
  if (steps.size() <= at(step)) steps.resize(at(step) + 1);
  return steps[at(step)];
}

}  // namespace

void context_heads_forward(const Context& context, ContextState& state, comm::Communicator& heads) {
  exchange_blocks(context, state.received, state.sent, heads);
}

void context_tokens_forward(const Context& context,
                            ContextState& state,
                            comm::Communicator& heads) {
  exchange_blocks(context, state.o_received, state.o_sent, heads);
}

void context_tokens_dgrad(const Context& context, ContextState& state, comm::Communicator& heads) {
  exchange_blocks(context, state.o_received, state.o_sent, heads);
}

void context_heads_dgrad(const Context& context, ContextState& state, comm::Communicator& heads) {
  exchange_blocks(context, state.received, state.sent, heads);
}

void context_ring_forward(const Context& context,
                          ContextState& state,
                          comm::Communicator& ring,
                          int step) {
  Tensor& come = place_of(state.kv_steps, step);
  come = context.wire(state.kv_TX.shape());
  pass_on(context, ring, come, state.kv_TX, member_at(ring, step), member_at(ring, -step));
}

void context_ring_dgrad(const Context& context,
                        ContextState& state,
                        comm::Communicator& ring,
                        int step) {
  Tensor& home = place_of(state.dkv_steps, step);
  Tensor& come = place_of(state.dkv_others, step);
  come = context.wire(home.shape());
  pass_on(context, ring, come, home, member_at(ring, -step), member_at(ring, step));
  home.reset();
}

void context_keys_forward(const Context& context, ContextState& state, comm::Communicator& others) {
  Tensor& come = place_of(state.kv_steps, 0);
  come = context.wire({state.kv_TX.dim(0) * others.size(), state.kv_TX.dim(1)});
  others.all_gather(context.stream, come, state.kv_TX);
}

void context_keys_dgrad(const Context& context, ContextState& state, comm::Communicator& others) {
  Tensor& sums = place_of(state.dkv_steps, 0);
  state.dkv_TX = context.wire_fp32({sums.dim(0) / others.size(), sums.dim(1)});
  others.reduce_scatter(context.stream, state.dkv_TX, sums);
  sums.reset();
}

void drop_context_keys(ContextState& state, int step) { place_of(state.kv_steps, step).reset(); }

}  // namespace weft::model
