#include "weft/plan/cost/kernel_work.h"

#include "weft/base/casts.h"
#include "weft/derive/layer_kind.h"
#include "weft/plan/cost/kernel_list.h"

namespace weft::plan {
namespace {

using base::number;
using config::ModelConfig;
using schedule::Part;
using schedule::Piece;

void add_feed_forward(KernelList& list, Piece piece, double tokens, double width) {
  const double h = number(list.model.hidden_size), share = width / list.work.tp;
  const double stream = list.work.own_tokens * h;
  if (piece == Piece::Mlp) list.memory(piece, Part::Norm, 2 * stream, 4 * stream);
  list.product(piece,
               Part::Fc1,
               {.m = tokens, .n = number(list.model.first_products()) * share, .k = h},
               list.work.number,
               Cast::Fused);
  list.memory(piece, Part::Act, 3 * tokens * share, 5 * tokens * share);
  list.product(piece, Part::Fc2, {.m = tokens, .n = h, .k = share}, list.work.number, Cast::Alone);
  if (piece == Piece::Mlp) list.memory(piece, Part::Add, 3 * stream, stream);
  list.small(piece, Part::None, 2, 4);
}

// Router in fp32: its input is written and read once more at twice the width.
void add_route(KernelList& list) {
  const double h = number(list.model.hidden_size), experts = number(list.model.experts());
  list.memory(Piece::Route, Part::Norm, 2 * list.work.own_tokens * h, 4 * list.work.own_tokens * h);
  list.memory(Piece::Route,
              Part::Gate,
              5 * list.work.own_tokens * h,
              6 * list.work.own_tokens * h,
              3);
  list.memory(Piece::Route,
              Part::Choose,
              12 * list.work.own_tokens * experts,
              8 * list.work.own_tokens * experts,
              2);
  list.small(Piece::Route, Part::Choose, 12, 12);
}

// Reorders rows for the wire and back. Flex dispatchers also reorder them by expert, in which
// alltoall receives them directly.
void add_rows(KernelList& list) {
  const double h = number(list.model.hidden_size);
  const double rows = list.work.rows * h, stream = list.work.own_tokens * h;
  if (list.work.is_flex) {
    const double more = list.work.program.flex_passes * rows;
    list.memory(Piece::Permute, Part::None, 2 * rows + more / 2, 2 * rows + more / 2, 3);
    list.memory(Piece::Merge,
                Part::None,
                2 * rows + 3 * stream + more / 2,
                2 * rows + stream + more / 2,
                3);
    list.small(Piece::Counts, Part::None, 8, 0);
    list.small(Piece::Dispatch, Part::None, 4, 4);
    list.small(Piece::Combine, Part::None, 3, 3);
    return;
  }
  list.memory(Piece::Permute, Part::None, stream + rows, stream + rows, 5);
  list.memory(Piece::Merge, Part::None, rows + 4 * stream, 2 * rows + stream, 5);
  list.small(Piece::Counts, Part::None, 14, 0);
  list.small(Piece::Dispatch, Part::None, 6, 6);
  list.small(Piece::Combine, Part::None, 4, 4);
}

// Values moved by SwiGLU with row weights: one kernel each way. A clamped gated quick GELU
// (GPT-OSS) has unfused steps before: each half of FC1's output is read and written by its clamp,
// and both by their concatenation. Backward, the halves are split, masked and joined into one
// gradient.
struct ActivationValues {
  double forward = 3, backward = 6, launches = 3;
};

ActivationValues activation_values(const ModelConfig& model) {
  if (!model.activation_func_clamp_value) return {};
  return {.forward = 11, .backward = 18, .launches = 7};
}

// Adds FC2's bias by expert: its rows times fp32 weights, concatenated and cast, each a call per
// local expert. The backward sums for the bias and the weights. In a fused feed-forward FC2's
// gradient is written once more and read for the sums.
void add_expert_biases(KernelList& list, double rows, double h, double width) {
  if (list.work.fuses_experts) {
    list.memory(Piece::Experts, Part::Fc2, rows * h, rows * (2 * h + 2 * width), 2);
    return;
  }
  constexpr double kForwardCalls = 3, kBackwardCalls = 7;
  const double calls = kGroupLaunch * list.work.local_experts;
  list.memory(Piece::Experts, Part::Fc2, 14 * rows * h, 21 * rows * h + 2 * rows * width, 0);
  list.launch(Piece::Experts, Part::Fc2, kForwardCalls * calls, kBackwardCalls * calls);
}

void add_experts(KernelList& list) {
  const double h = number(list.model.hidden_size), width = number(list.model.expert_shard_width());
  const double each = list.work.rows / list.work.local_experts;
  const Cast cast = list.work.fuses_experts ? Cast::Fused : Cast::Alone;
  list.product(Piece::Experts,
               Part::Fc1,
               {.m = each,
                .n = number(list.model.first_products()) * width,
                .k = h,
                .groups = list.work.local_experts},
               list.work.number,
               cast);
  if (!list.work.fuses_experts) {
    const ActivationValues values = activation_values(list.model);
    list.memory(Piece::Experts,
                Part::Act,
                values.forward * list.work.rows * width,
                values.backward * list.work.rows * width,
                values.launches);
    list.small(Piece::Experts, Part::Act, 4, 6);
  }
  list.product(Piece::Experts,
               Part::Fc2,
               {.m = each, .n = h, .k = width, .groups = list.work.local_experts},
               list.work.number,
               cast);
  if (list.model.add_bias_linear) add_expert_biases(list, list.work.rows, h, width);
}

void add_embed(KernelList& list) {
  const double stream = list.work.own_tokens * number(list.model.hidden_size);
  list.memory(Piece::Embed, Part::None, 2 * stream, 6 * stream, 4);
}

// Logits are written and read, once in fp32; their gradient overwrites them.
void add_head(KernelList& list) {
  const double h = number(list.model.hidden_size),
               vocabulary = number(list.model.vocab_size) / list.work.tp;
  const double stream = list.work.own_tokens * h, logits = list.work.tokens * vocabulary;
  list.memory(Piece::Head, Part::Norm, 2 * stream, 4 * stream);
  list.product(Piece::Head,
               Part::Logits,
               {.m = list.work.tokens, .n = vocabulary, .k = h},
               list.work.wide,
               Cast::Alone);
  list.memory(Piece::Head,
              Part::Loss,
              list.work.program.loss_forward * logits,
              list.work.program.loss_backward * logits,
              8);
}

void add_mtp(KernelList& list) {
  const double h = number(list.model.hidden_size), stream = list.work.own_tokens * h;
  list.memory(Piece::Mlp, Part::Norm, 10 * stream, 14 * stream, 6);
  list.product(Piece::Mlp,
               Part::Fc1,
               {.m = list.work.tokens, .n = h / list.work.tp, .k = 2 * h},
               list.work.number,
               Cast::Alone);
}

}  // namespace

std::vector<Kernel> layer_kernels(const config::Config& config,
                                  const Workload& work,
                                  std::int64_t layer) {
  const ModelConfig& model = config.model;
  KernelList list(model, work);
  add_attention(list, layer);
  if (!model.is_moe_layer(layer)) {
    add_feed_forward(list, Piece::Mlp, work.tokens, number(model.dense_width()));
    return list.take();
  }
  add_route(list);
  add_rows(list);
  add_experts(list);
  if (const std::int64_t width = derive::shared_expert_width(model); width > 0) {
    add_feed_forward(list, Piece::Shared, work.tokens, number(width));
  }
  return list.take();
}

std::vector<Kernel> embed_kernels(const config::Config& config, const Workload& work) {
  KernelList list(config.model, work);
  add_embed(list);
  return list.take();
}

std::vector<Kernel> head_kernels(const config::Config& config, const Workload& work) {
  KernelList list(config.model, work);
  add_head(list);
  return list.take();
}

std::vector<Kernel> mtp_kernels(const config::Config& config, const Workload& work) {
  KernelList list(config.model, work);
  add_mtp(list);
  return list.take();
}

}  // namespace weft::plan
