#include "weft/model/context_parallel.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::model {
namespace {

using base::at;
using derive::KeyExchange;
using kernels::AttentionMask;
using kernels::AttentionShape;
using kernels::SequenceRows;

std::int64_t value_head(const AttentionShape& shape) {
  return shape.value_width.value_or(shape.head_width);
}
std::int64_t key_columns(const AttentionShape& shape) { return shape.groups * shape.head_width; }
std::int64_t value_columns(const AttentionShape& shape) { return shape.groups * value_head(shape); }
std::int64_t output_columns(const AttentionShape& shape) { return shape.heads * value_head(shape); }

// Shape from `arrange` on: tokens of all ranks that exchange heads, and a share of the heads.
AttentionShape core_shape(const ContextSharing& sharing) {
  AttentionShape shape = sharing.shape;
  const std::int64_t ranks = sharing.by.head_ranks;
  shape.sequence *= ranks;
  shape.heads /= ranks;
  shape.groups /= ranks;
  return shape;
}

struct KeysAndValues {
  Tensor k, v;
};
KeysAndValues split(const Tensor& kv_TX, const AttentionShape& shape) {
  return {kv_TX.columns(0, key_columns(shape)),
          kv_TX.columns(key_columns(shape), value_columns(shape))};
}

// Blocks that turn rows of `ranks` ranks, rank by rank, into sequence order; a rank has two chunks
// of each sequence.
std::vector<kernels::RowBlock> into_sequences(std::int64_t ranks,
                                              std::int64_t tokens,
                                              std::int64_t rows_of_sequence) {
  const std::int64_t chunk = rows_of_sequence / 2, sequence = rows_of_sequence * ranks;
  std::vector<kernels::RowBlock> blocks;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    for (std::int64_t i = 0; i < tokens / rows_of_sequence; ++i) {
      const std::int64_t from = rank * tokens + i * rows_of_sequence, to = i * sequence;
      blocks.push_back({from, to + rank * chunk, chunk});
      blocks.push_back({from + chunk, to + (2 * ranks - 1 - rank) * chunk, chunk});
    }
  }
  return blocks;
}

std::vector<kernels::RowBlock> out_of_sequences(std::int64_t ranks,
                                                std::int64_t tokens,
                                                std::int64_t rows_of_sequence) {
  std::vector<kernels::RowBlock> blocks = into_sequences(ranks, tokens, rows_of_sequence);
  for (kernels::RowBlock& block : blocks) std::swap(block.from, block.to);
  return blocks;
}

// Exchanged heads travel as one block of rows per rank: its heads' columns of each matrix, side by
// side. Returns one rank's columns of `of`.
Tensor heads_of(const Tensor& of, std::int64_t ranks, std::int64_t rank) {
  const std::int64_t width = of.dim(1) / ranks;
  return of.columns(rank * width, width);
}

Tensor by_rank(const Context& context,
               const ContextSharing& sharing,
               std::initializer_list<Tensor> matrices) {
  const std::int64_t ranks = sharing.by.head_ranks, tokens = matrices.begin()->dim(0);
  std::int64_t columns = 0;
  for (const Tensor& matrix : matrices) columns += matrix.dim(1) / ranks;
  Tensor sent = context.wire({ranks * tokens, columns});
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::int64_t column = 0;
    for (const Tensor& matrix : matrices) {
      const Tensor own = heads_of(matrix, ranks, rank);
      const kernels::RowBlock rows{.from = 0, .to = rank * tokens, .rows = tokens};
      kernels::copy_rows(context.stream, sent.columns(column, own.dim(1)), own, {&rows, 1});
      column += own.dim(1);
    }
  }
  return sent;
}

void from_ranks(const Context& context,
                const ContextSharing& sharing,
                const Tensor& received,
                std::initializer_list<Tensor> matrices) {
  const std::int64_t ranks = sharing.by.head_ranks, tokens = matrices.begin()->dim(0);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::int64_t column = 0;
    for (const Tensor& matrix : matrices) {
      const Tensor own = heads_of(matrix, ranks, rank);
      const kernels::RowBlock rows{.from = rank * tokens, .to = 0, .rows = tokens};
      kernels::copy_rows(context.stream, own, received.columns(column, own.dim(1)), {&rows, 1});
      column += own.dim(1);
    }
  }
}

// Reorders rows of all ranks that exchange heads, between rank order and sequence order.
void order_rows(const Context& context,
                const ContextSharing& sharing,
                const Tensor& to,
                const Tensor& from) {
  const std::int64_t ranks = sharing.by.head_ranks;
  kernels::copy_rows(context.stream,
                     to,
                     from,
                     into_sequences(ranks, from.dim(0) / ranks, sharing.shape.sequence));
}

void order_rows_back(const Context& context,
                     const ContextSharing& sharing,
                     const Tensor& to,
                     const Tensor& from) {
  const std::int64_t ranks = sharing.by.head_ranks;
  kernels::copy_rows(context.stream,
                     to,
                     from,
                     out_of_sequences(ranks, from.dim(0) / ranks, sharing.shape.sequence));
}

// Shape of the visible queries and keys of another rank in the ring.
AttentionShape part_shape(const ContextSharing& sharing, std::int64_t rank, std::int64_t key_rank) {
  AttentionShape shape = core_shape(sharing);
  const std::int64_t rows = shape.sequence, chunk = rows / 2;
  const SequenceRows all{rows, 0, rows};
  shape.mask = AttentionMask::None;
  shape.queries = key_rank < rank ? all : SequenceRows{rows, chunk, chunk};
  shape.keys = key_rank < rank ? SequenceRows{rows, 0, chunk} : all;
  return shape;
}

// Ring: rank whose keys are here at a step, and rank that has this rank's keys.
std::int64_t source_of(const ContextSharing& sharing, std::int64_t step) {
  const std::int64_t ranks = sharing.by.key_ranks;
  return (sharing.key_rank - step + ranks) % ranks;
}
std::int64_t reader_of(const ContextSharing& sharing, std::int64_t step) {
  return (sharing.key_rank + step) % sharing.by.key_ranks;
}

bool is_ring(const ContextSharing& sharing) { return sharing.by.keys == KeyExchange::Ring; }

// Gathered keys: the queries of one of the rank's chunks, and all keys up to theirs.
AttentionShape prefix_shape(const ContextSharing& sharing, std::int64_t half) {
  AttentionShape shape = sharing.shape;
  const std::int64_t ranks = sharing.by.key_ranks, rows = shape.sequence, chunk = rows / 2;
  const std::int64_t number = half == 0 ? sharing.key_rank : 2 * ranks - 1 - sharing.key_rank;
  shape.queries = SequenceRows{rows, half * chunk, chunk};
  shape.keys = SequenceRows{rows * ranks, 0, (number + 1) * chunk};
  return shape;
}

// Gathered keys and values in sequence order.
Tensor ordered_keys(const Context& context, const ContextSharing& sharing, ContextState& state) {
  const Tensor& gathered = state.kv_steps[0];
  const std::int64_t ranks = sharing.by.key_ranks;
  Tensor ordered = context.activation(gathered.shape());
  kernels::copy_rows(context.stream,
                     ordered,
                     gathered,
                     into_sequences(ranks, gathered.dim(0) / ranks, sharing.shape.sequence));
  return ordered;
}

void forward(const Context& context,
             const Tensor& o_TO,
             const Tensor& lse_HT,
             const Tensor& q_TQ,
             const Tensor& kv_TX,
             const AttentionShape& shape) {
  const auto [k, v] = split(kv_TX, shape);
  kernels::attention_forward(context.stream, context.pool, o_TO, lse_HT, q_TQ, k, v, shape);
}

void dgrad(const Context& context,
           const ContextState& state,
           const Tensor& dq_TQ,
           const Tensor& dkv_TX,
           const Tensor& kv_TX,
           const AttentionShape& shape) {
  const auto [k, v] = split(kv_TX, shape);
  const auto [dk, dv] = split(dkv_TX, shape);
  kernels::attention_dgrad(context.stream,
                           context.pool,
                           dq_TQ,
                           dk,
                           dv,
                           state.do_TO,
                           state.o_TO,
                           state.lse_HT,
                           state.q_TQ,
                           k,
                           v,
                           shape);
}

Tensor zeros_fp32(const Context& context, const Tensor& like) {
  Tensor zeros = context.activation_fp32(like.shape());
  kernels::zero(context.stream, zeros);
  return zeros;
}

void gathered_forward(const Context& context, const ContextSharing& sharing, ContextState& state) {
  const Tensor kv = ordered_keys(context, sharing, state);
  state.o_TO = context.activation({state.q_TQ.dim(0), output_columns(sharing.shape)});
  state.lse_HT = context.activation_fp32({sharing.shape.heads, state.q_TQ.dim(0)});
  for (const std::int64_t half : {0, 1}) {
    forward(context, state.o_TO, state.lse_HT, state.q_TQ, kv, prefix_shape(sharing, half));
  }
}

// Gradients of all ranks' keys, for the reduction over ranks.
void gathered_dgrad(const Context& context, const ContextSharing& sharing, ContextState& state) {
  const Tensor kv = ordered_keys(context, sharing, state);
  drop_context_keys(state, 0);
  const Tensor sums = zeros_fp32(context, kv);
  state.dq_TQ = context.activation(state.q_TQ.shape());
  for (const std::int64_t half : {0, 1}) {
    const AttentionShape shape = prefix_shape(sharing, half);
    const Tensor part = context.activation(kv.shape());
    dgrad(context, state, state.dq_TQ, part, kv, shape);
    kernels::accumulate_rows(context.stream, sums, part, *shape.keys);
  }
  const std::int64_t ranks = sharing.by.key_ranks;
  state.dkv_steps.resize(1);
  state.dkv_steps[0] = context.wire_fp32(sums.shape());
  kernels::copy_rows(context.stream,
                     state.dkv_steps[0],
                     sums,
                     out_of_sequences(ranks, sums.dim(0) / ranks, sharing.shape.sequence));
}

// Attention over the rank's own keys; in fp32 if other steps follow.
void own_forward(const Context& context, const ContextSharing& sharing, ContextState& state) {
  const AttentionShape shape = core_shape(sharing);
  const std::int64_t tokens = state.q_TQ.dim(0);
  Tensor o_TO = context.activation({tokens, output_columns(shape)});
  state.lse_HT = context.activation_fp32({shape.heads, tokens});
  forward(context, o_TO, state.lse_HT, state.q_TQ, state.kv_TX, shape);
  if (!is_ring(sharing)) {
    state.o_TO = std::move(o_TO);
  } else if (o_TO.dtype() == DType::F32) {
    state.sum_TO = std::move(o_TO);
  } else {
    state.sum_TO = context.activation_fp32(o_TO.shape());
    kernels::copy(context.stream, state.sum_TO, o_TO);
  }
}

void step_forward(const Context& context,
                  const ContextSharing& sharing,
                  ContextState& state,
                  int step) {
  const AttentionShape shape = part_shape(sharing, sharing.key_rank, source_of(sharing, step));
  const Tensor part_TO = context.activation(state.sum_TO.shape());
  const Tensor part_lse_HT = context.activation_fp32(state.lse_HT.shape());
  forward(context, part_TO, part_lse_HT, state.q_TQ, state.kv_steps[at(step)], shape);
  kernels::attention_merge(context.stream, state.sum_TO, state.lse_HT, part_TO, part_lse_HT, shape);
}

// Called after the last step of a ring.
void round_output(const Context& context, ContextState& state) {
  if (context.dtype() == DType::F32) {
    state.o_TO = std::move(state.sum_TO);
  } else {
    state.o_TO = context.activation(state.sum_TO.shape());
    kernels::copy(context.stream, state.o_TO, state.sum_TO);
  }
  state.sum_TO.reset();
}

// Adds gradients of the rank's keys that the reader at `step` sent back, if that step exists.
void add_others(const Context& context,
                const ContextSharing& sharing,
                ContextState& state,
                int step) {
  if (step >= sharing.by.key_ranks) return;
  Tensor& come = state.dkv_others[at(step)];
  const AttentionShape shape = part_shape(sharing, reader_of(sharing, step), sharing.key_rank);
  kernels::accumulate_rows(context.stream, state.dkv_TX, come, *shape.keys);
  come.reset();
}

void step_dgrad(const Context& context,
                const ContextSharing& sharing,
                ContextState& state,
                int step) {
  const AttentionShape shape =
      step == 0 ? core_shape(sharing)
                : part_shape(sharing, sharing.key_rank, source_of(sharing, step));
  if (step + 1 == sharing.by.key_ranks) {
    state.dq_TQ = zeros_fp32(context, state.q_TQ);
    state.dkv_TX = zeros_fp32(context, state.kv_TX);
    state.dkv_steps.resize(at(sharing.by.key_ranks));
    state.dkv_others.resize(at(sharing.by.key_ranks));
  }
  const Tensor dq_part = context.activation(state.q_TQ.shape());
  Tensor dkv_part = context.wire(state.kv_TX.shape());
  const Tensor kv = step == 0 ? state.kv_TX : state.kv_steps[at(step)];
  dgrad(context, state, dq_part, dkv_part, kv, shape);
  kernels::accumulate_rows(context.stream, state.dq_TQ, dq_part, shape.query_rows());
  if (step == 0) {
    kernels::accumulate_rows(context.stream, state.dkv_TX, dkv_part, shape.key_rows());
  } else {
    state.dkv_steps[at(step)] = std::move(dkv_part);
    drop_context_keys(state, step);
  }
  // During the previous step, gradients computed two steps ago arrived.
  add_others(context, sharing, state, step + 2);
}

void own_dgrad(const Context& context, const ContextSharing& sharing, ContextState& state) {
  state.dq_TQ = context.activation(state.q_TQ.shape());
  state.dkv_TX = context.activation(state.kv_TX.shape());
  dgrad(context, state, state.dq_TQ, state.dkv_TX, state.kv_TX, core_shape(sharing));
}

// Gradients sent by the first step arrive last.
void finish_gradients(const Context& context, const ContextSharing& sharing, ContextState& state) {
  if (is_ring(sharing)) add_others(context, sharing, state, 1);
}

}  // namespace

void context_begin(const Context& context,
                   const ContextSharing& sharing,
                   ContextState& state,
                   const Attended& attended) {
  if (sharing.by.head_ranks > 1) {
    state.sent = by_rank(context, sharing, {attended.q_TQ, attended.k_TK, attended.v_TV});
    return;
  }
  state.q_TQ = attended.q_TQ;
  if (!state.q_TQ.contiguous()) {
    state.q_TQ = context.activation(attended.q_TQ.shape());
    kernels::copy(context.stream, state.q_TQ, attended.q_TQ);
  }
  const std::int64_t keys = attended.k_TK.dim(1), values = attended.v_TV.dim(1);
  state.kv_TX = context.activation({attended.q_TQ.dim(0), keys + values});
  kernels::copy(context.stream, state.kv_TX.columns(0, keys), attended.k_TK);
  kernels::copy(context.stream, state.kv_TX.columns(keys, values), attended.v_TV);
}

void context_arrange_forward(const Context& context,
                             const ContextSharing& sharing,
                             ContextState& state) {
  const std::int64_t rows = state.received.dim(0), columns = state.received.dim(1);
  const AttentionShape shape = core_shape(sharing);
  const std::int64_t queries = shape.heads * shape.head_width;
  state.q_TQ = context.activation({rows, queries});
  state.kv_TX = context.activation({rows, columns - queries});
  order_rows(context, sharing, state.q_TQ, state.received.columns(0, queries));
  order_rows(context, sharing, state.kv_TX, state.received.columns(queries, columns - queries));
  state.received.reset();
}

void context_core_forward(const Context& context,
                          const ContextSharing& sharing,
                          ContextState& state,
                          int step) {
  if (sharing.by.keys == KeyExchange::Gather) {
    gathered_forward(context, sharing, state);
  } else if (step == 0) {
    own_forward(context, sharing, state);
  } else {
    step_forward(context, sharing, state, step);
  }
  if (is_ring(sharing) && step + 1 == sharing.by.key_ranks) round_output(context, state);
}

void context_send_output(const Context& context,
                         const ContextSharing& sharing,
                         ContextState& state) {
  if (sharing.by.head_ranks == 1 || !state.o_TO.defined()) return;
  state.o_sent = context.wire(state.o_TO.shape());
  order_rows_back(context, sharing, state.o_sent, state.o_TO);
}

Tensor context_end(const Context& context, const ContextSharing& sharing, ContextState& state) {
  if (sharing.by.head_ranks == 1) return state.o_TO;
  const std::int64_t tokens = state.o_received.dim(0) / sharing.by.head_ranks;
  Tensor o_TO = context.activation({tokens, output_columns(sharing.shape)});
  from_ranks(context, sharing, state.o_received, {o_TO});
  state.o_received.reset();
  return o_TO;
}

void context_end_dgrad(const Context& context,
                       const ContextSharing& sharing,
                       ContextState& state,
                       Tensor do_TO) {
  if (sharing.by.head_ranks == 1) {
    state.do_TO = std::move(do_TO);
  } else {
    state.o_sent = by_rank(context, sharing, {do_TO});
  }
}

void context_core_dgrad(const Context& context,
                        const ContextSharing& sharing,
                        ContextState& state,
                        int step) {
  if (state.o_received.defined()) {
    state.do_TO = context.activation(state.o_received.shape());
    order_rows(context, sharing, state.do_TO, state.o_received);
    state.o_received.reset();
  }
  switch (sharing.by.keys) {
    case KeyExchange::None:
      own_dgrad(context, sharing, state);
      break;
    case KeyExchange::Ring:
      step_dgrad(context, sharing, state, step);
      break;
    case KeyExchange::Gather:
      gathered_dgrad(context, sharing, state);
      break;
  }
  if (step > 0) return;
  for (Tensor* done : {&state.q_TQ, &state.kv_TX, &state.o_TO, &state.do_TO, &state.lse_HT}) {
    done->reset();
  }
}

void context_arrange_dgrad(const Context& context,
                           const ContextSharing& sharing,
                           ContextState& state) {
  finish_gradients(context, sharing, state);
  const std::int64_t queries = state.dq_TQ.dim(1), columns = queries + state.dkv_TX.dim(1);
  const auto rounded = [&](Tensor& gradient) {
    if (gradient.dtype() == context.dtype()) return;
    const Tensor sums = gradient;
    gradient = context.activation(sums.shape());
    kernels::copy(context.stream, gradient, sums);
  };
  rounded(state.dq_TQ);
  rounded(state.dkv_TX);
  state.sent = context.wire({state.dq_TQ.dim(0), columns});
  order_rows_back(context, sharing, state.sent.columns(0, queries), state.dq_TQ);
  order_rows_back(context, sharing, state.sent.columns(queries, columns - queries), state.dkv_TX);
  state.dq_TQ.reset();
  state.dkv_TX.reset();
}

std::int64_t context_tokens(const ContextSharing& sharing, const ContextState& state) {
  const Tensor& rows = sharing.by.head_ranks > 1 ? state.received : state.dq_TQ;
  return rows.dim(0) / sharing.by.head_ranks;
}

void context_begin_dgrad(const Context& context,
                         const ContextSharing& sharing,
                         ContextState& state,
                         const Attended& gradients) {
  if (sharing.by.head_ranks > 1) {
    from_ranks(context, sharing, state.received, {gradients.q_TQ, gradients.k_TK, gradients.v_TV});
  } else {
    finish_gradients(context, sharing, state);
    const auto [dk, dv] = split(state.dkv_TX, sharing.shape);
    kernels::copy(context.stream, gradients.q_TQ, state.dq_TQ);
    kernels::copy(context.stream, gradients.k_TK, dk);
    kernels::copy(context.stream, gradients.v_TV, dv);
  }
  state = {};
}

std::vector<Tensor*> attended_of_context(ContextState& state) {
  return {&state.q_TQ, &state.kv_TX};
}

std::vector<Tensor*> made_by_context_core(ContextState& state) {
  return {&state.o_TO, &state.lse_HT};
}

}  // namespace weft::model
