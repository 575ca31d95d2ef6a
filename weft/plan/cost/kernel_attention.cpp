// Kernels of each kind of attention.
#include <algorithm>

#include "weft/base/casts.h"
#include "weft/derive/context_sharing.h"
#include "weft/derive/layer_kind.h"
#include "weft/plan/cost/kernel_list.h"

namespace weft::plan {
namespace {

using base::number;
using schedule::Direction;
using schedule::Part;
using schedule::Piece;

// Channels over all heads.
struct CoreWidths {
  double scores = 0, values = 0;  // multiplied with queries, and in the output
  double keys = 0;                // keys and values together, before heads share them
};

// Adds the ring of context-parallel ranks: attention to the keys of one rank at a time. Each output
// is added in fp32 to the earlier ones; backward, so are the gradients of queries and of returning
// keys.
void add_steps_of_ring(KernelList& list, const CoreWidths& widths, double steps) {
  // A value is read, and an fp32 sum read and written; in values, as KernelList::memory counts.
  const double values_of_sum = (list.work.element + 4 + 4) / list.work.element;
  const double each = (steps - 1) * list.work.tokens / list.work.tp * values_of_sum;
  list.memory(Piece::Attention,
              Part::Core,
              each * widths.values,
              each * (widths.scores + widths.keys),
              2 * (steps - 1));
}

// Slowdown of narrow heads. Attention rates belong to heads of 128 channels. Each score costs an
// exponential besides its products, equivalent to kExponential channels. Fitted to published rates
// of heads of 64 (about three quarters of those of 128).
double slower_by_width(double channels) {
  constexpr double kUsual = 128, kExponential = 64;
  if (channels >= kUsual) return 1;
  return (channels + kExponential) / channels * kUsual / (kUsual + kExponential);
}

// Adds scores and values over the visible tokens of a query, two operations each. The backward has
// five products instead of two.
void add_core(KernelList& list, const CoreWidths& widths, double seen, std::int64_t layer) {
  const double heads = number(list.model.num_attention_heads);
  const double flops = slower_by_width(widths.scores / heads) * 2 * list.work.tokens * seen *
                       (widths.scores + widths.values) / list.work.tp;
  const derive::AttentionSharing sharing = derive::attention_sharing(list.model, layer);
  const bool is_ring = sharing.keys == derive::KeyExchange::Ring;
  const std::int64_t steps = is_ring ? sharing.key_ranks : 1;
  for (std::int64_t step = 0; step < steps; ++step) {
    list.add({.piece = Piece::Attention,
              .part = Part::Core,
              .kind = KernelKind::Attention,
              .number = list.work.wide,
              .flops = flops / number(steps),
              .launches = 3});
    list.add({.piece = Piece::Attention,
              .part = Part::Core,
              .direction = Direction::D,
              .kind = KernelKind::Attention,
              .number = list.work.wide,
              .flops = 2.5 * flops / number(steps),
              .launches = 4});
  }
  if (steps > 1) add_steps_of_ring(list, widths, number(steps));
}

void add_grouped(KernelList& list, std::int64_t layer) {
  const double h = number(list.model.hidden_size);
  const double q = number(list.model.query_width()), kv = number(list.model.key_width());
  const double gate = list.model.attention_output_gate ? q : 0;
  list.product(Piece::Attention,
               Part::Qkv,
               {.m = list.work.tokens, .n = (q + gate + 2 * kv) / list.work.tp, .k = h},
               list.work.number,
               Cast::Fused);
  const double turned = list.work.tokens * (q + kv) / list.work.tp;
  list.memory(Piece::Attention, Part::Turn, 2 * turned, 2 * turned, 2);
  if (list.model.qk_layernorm != config::QkNorm::None) {
    list.memory(Piece::Attention, Part::Turn, 2 * turned, 3 * turned, 2);
  }
  double seen = list.work.sequence / 2;
  if (derive::is_windowed(list.model, layer)) {
    seen = std::min(seen, number(list.model.window_size.value_or(list.model.seq_length)));
  }
  add_core(list, {.scores = q, .values = q, .keys = 2 * kv}, seen, layer);
  if (gate > 0)
    list.memory(Piece::Attention,
                Part::Proj,
                3 * list.work.tokens * q / list.work.tp,
                5 * list.work.tokens * q / list.work.tp,
                2);
  list.product(Piece::Attention,
               Part::Proj,
               {.m = list.work.tokens, .n = h, .k = q / list.work.tp},
               list.work.number,
               Cast::Alone);
}

void add_latent(KernelList& list, std::int64_t layer) {
  const double h = number(list.model.hidden_size),
               heads = number(list.model.num_attention_heads) / list.work.tp;
  const double wide = number(list.model.latent_head_dim()), value = number(list.model.v_head_dim);
  const double rank = number(list.model.kv_lora_rank),
               turned = number(list.model.qk_pos_emb_head_dim);
  const double in = list.work.tokens;
  if (list.model.q_lora_rank) {
    const double queries = number(*list.model.q_lora_rank);
    list.product(Piece::Attention,
                 Part::Qkv,
                 {.m = in, .n = queries, .k = h},
                 list.work.number,
                 Cast::Fused);
    list.memory(Piece::Attention, Part::Norm, 2 * in * queries, 3 * in * queries);
    list.product(Piece::Attention,
                 Part::Expand,
                 {.m = in, .n = heads * wide, .k = queries},
                 list.work.number,
                 Cast::Fused);
  } else {
    list.product(Piece::Attention,
                 Part::Qkv,
                 {.m = in, .n = heads * wide, .k = h},
                 list.work.number,
                 Cast::Fused);
  }
  list.product(Piece::Attention,
               Part::Qkv,
               {.m = in, .n = rank + turned, .k = h},
               list.work.number,
               Cast::Fused);
  list.memory(Piece::Attention, Part::Norm, 2 * in * rank, 3 * in * rank);
  list.product(Piece::Attention,
               Part::Expand,
               {.m = in, .n = heads * (number(list.model.qk_head_dim) + value), .k = rank},
               list.work.number,
               Cast::Fused);
  // Rotation, and the copies that join rotated and unrotated channels.
  list.memory(Piece::Attention, Part::Heads, 3 * in * heads * wide, 4 * in * heads * wide, 4);
  const double all = heads * list.work.tp;
  add_core(list,
           {.scores = all * wide, .values = all * value, .keys = all * (wide + value)},
           list.work.sequence / 2,
           layer);
  list.product(Piece::Attention,
               Part::Proj,
               {.m = in, .n = h, .k = heads * value},
               list.work.number,
               Cast::Alone);
}

// Linear attention in chunks consists of small products between reads and writes: it is bound by
// memory.
void add_delta_net(KernelList& list) {
  const double h = number(list.model.hidden_size);
  const double key = number(list.model.linear_num_key_heads * list.model.linear_key_head_dim);
  const double value = number(list.model.linear_num_value_heads * list.model.linear_value_head_dim);
  const double scalars = 2 * number(list.model.linear_num_value_heads);
  const double in = list.work.tokens, width = (2 * key + 2 * value) / list.work.tp;
  list.product(Piece::Attention,
               Part::Qkv,
               {.m = in, .n = (2 * key + 2 * value + scalars) / list.work.tp, .k = h},
               list.work.number,
               Cast::Fused);
  list.memory(Piece::Attention, Part::Core, 14 * in * width, 26 * in * width, 12);
  list.product(Piece::Attention,
               Part::Proj,
               {.m = in, .n = h, .k = value / list.work.tp},
               list.work.number,
               Cast::Alone);
}

}  // namespace

void add_attention(KernelList& list, std::int64_t layer) {
  const double stream = list.work.own_tokens * number(list.model.hidden_size);
  list.memory(Piece::Attention, Part::Norm, 2 * stream, 4 * stream);
  switch (derive::attention_of(list.model, layer)) {
    case derive::AttentionKind::Grouped:
      add_grouped(list, layer);
      break;
    case derive::AttentionKind::Latent:
      add_latent(list, layer);
      break;
    case derive::AttentionKind::DeltaNet:
      add_delta_net(list);
      break;
  }
  list.memory(Piece::Attention, Part::Proj, 3 * stream, stream);  // residual stream
  list.small(Piece::Attention, Part::None, 4, 8);
}

}  // namespace weft::plan
