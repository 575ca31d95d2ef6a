// Bodies of attention over context-parallel ranks, and the handover from other parts.
#include "weft/derive/layer_kind.h"
#include "weft/train/program/program_pieces.h"

namespace weft::train {
namespace {

using model::Context;
using schedule::Node;
using schedule::Part;
using tensor::Tensor;

}  // namespace

bool Program::attends_across_ranks(const Node& node) const {
  return derive::attention_sharing(config_.model, node.layer).is_shared();
}

bool Program::exchanges_heads(const Node& node) const {
  return derive::attention_sharing(config_.model, node.layer).head_ranks > 1;
}

bool Program::feeds_context_without_exchange(const Node& node) const {
  return is_last_before_context(node) && !exchanges_heads(node);
}

bool Program::is_last_before_context(const Node& node) const {
  Part last = derive::norms_across_ranks(config_.model) ? Part::Turn : Part::Qkv;
  if (config_.model.multi_latent_attention) last = Part::Expand;
  return node.part == last && attends_across_ranks(node);
}

model::ContextSharing Program::context_sharing(const Context& context, const Node& node) {
  model::ContextSharing sharing{.by = derive::attention_sharing(config_.model, node.layer)};
  sharing.key_rank = groups_.self.cp / sharing.by.head_ranks;
  with_attention(node, [&](const auto& state, const auto&) {
    sharing.shape = attention_shape(context, state);
  });
  return sharing;
}

comm::Communicator& Program::head_ranks(const Node& node) const {
  const auto ranks = derive::attention_sharing(config_.model, node.layer).head_ranks;
  return ranks == groups_.grid.cp() ? *groups_.cp : *groups_.cp_heads;
}

comm::Communicator& Program::key_ranks(const Node& node) const {
  const auto ranks = derive::attention_sharing(config_.model, node.layer).key_ranks;
  return ranks == groups_.grid.cp() ? *groups_.cp : *groups_.cp_ring;
}

void Program::begin_context(const Context& context, const Node& node) {
  const model::ContextSharing sharing = context_sharing(context, node);
  with_attention(node, [&](auto& state, const auto&) {
    context_begin(context, sharing, layer(node).context, take_attended(context, state));
  });
}

void Program::end_context(const Context& context, const Node& node) {
  const model::ContextSharing sharing = context_sharing(context, node);
  with_attention(node, [&](auto& state, const auto&) {
    put_output(state, context_end(context, sharing, layer(node).context));
  });
}

void Program::end_context_gradient(const Context& context, const Node& node) {
  const model::ContextSharing sharing = context_sharing(context, node);
  with_attention(node, [&](auto& state, const auto&) {
    context_end_dgrad(context, sharing, layer(node).context, take_output_gradient(state));
  });
}

void Program::begin_context_gradient(const Context& context, const Node& node) {
  const model::ContextSharing sharing = context_sharing(context, node);
  model::ContextState& shared = layer(node).context;
  with_attention(node, [&](auto& state, const auto&) {
    const std::int64_t tokens = context_tokens(sharing, shared);
    context_begin_dgrad(context, sharing, shared, attended_gradients(context, state, tokens));
  });
}

// Recomputes all steps in order, with the keys present again. The output is needed only if the
// projection has not kept it.
void Program::attend_again(const Context& context, const Node& node) {
  const model::ContextSharing sharing = context_sharing(context, node);
  model::ContextState& shared = layer(node).context;
  const bool is_ring = sharing.by.keys == derive::KeyExchange::Ring;
  const int steps = is_ring ? static_cast<int>(sharing.by.key_ranks) : 1;
  for (int step = 0; step < steps; ++step) context_core_forward(context, sharing, shared, step);
  if (!exchanges_heads(node)) return end_context(context, node);
  Node tokens = node;
  tokens.part = Part::Tokens;
  if (schedule::piece_of(anatomy_, tokens).is_recomputed) {
    context_send_output(context, sharing, shared);
  }
}

std::vector<Tensor*> Program::attended_in_context(const Node& node) {
  return attended_of_context(layer(node).context);
}

void Program::drop_in_context(const Node& node) {
  if (!feeds_context_without_exchange(node)) return;
  for (Tensor* attended : attended_in_context(node)) attended->reset();
}

// Offloadable tensors of qkv. With normed queries and keys: the product, and the norms' statistics
// if heads are exchanged. Otherwise: the inputs of attention.
std::vector<Tensor*> Program::offloaded_of_qkv(const Node& node) {
  model::AttentionState& state = layer(node).attention;
  const bool is_normed = layer_weights(node).attention.q_norm.defined();
  if (exchanges_heads(node)) return {&state.qkv_TC, &state.q_rstd, &state.k_rstd};
  if (!is_normed && attends_across_ranks(node)) return attended_in_context(node);
  return {&state.qkv_TC};
}

std::vector<Tensor*> Program::made_by_core(const Node& node) {
  if (attends_across_ranks(node)) return made_by_context_core(layer(node).context);
  std::vector<Tensor*> made;
  with_attention(node, [&](auto& state, const auto&) { made = model::made_by_core(state); });
  return made;
}

Tensor& Program::attention_output(const Node& node) {
  model::LayerState& state = layer(node);
  return config_.model.multi_latent_attention ? state.latent_attention.o_TV : state.attention.o_TQ;
}

Program::Bodies Program::Pieces::context_heads() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    context_heads_forward(context, p.layer(node).context, p.head_ranks(node));
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                context_heads_dgrad(context, p.layer(node).context, p.head_ranks(node));
              },
          .recompute = forward};
}

Program::Bodies Program::Pieces::context_arrange() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    context_arrange_forward(context, p.context_sharing(context, node), p.layer(node).context);
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            context_arrange_dgrad(context, p.context_sharing(context, node), p.layer(node).context);
          },
      .recompute = forward,
      .drop =
          [](Program& p, const Node& node) {
            for (Tensor* made : p.attended_in_context(node)) made->reset();
          },
      .made = [](Program& p, const Node& node) { return p.attended_in_context(node); }};
}

Program::Bodies Program::Pieces::context_ring() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    context_ring_forward(context, p.layer(node).context, p.key_ranks(node), step_of(node));
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            context_ring_dgrad(context, p.layer(node).context, p.key_ranks(node), step_of(node));
          },
      .recompute = forward,
      .drop = [](Program& p,
                 const Node& node) { drop_context_keys(p.layer(node).context, step_of(node)); }};
}

Program::Bodies Program::Pieces::context_keys() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    context_keys_forward(context, p.layer(node).context, p.key_ranks(node));
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            context_keys_dgrad(context, p.layer(node).context, p.key_ranks(node));
          },
      .recompute = forward,
      .drop = [](Program& p, const Node& node) { drop_context_keys(p.layer(node).context, 0); }};
}

Program::Bodies Program::Pieces::context_tokens() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    context_tokens_forward(context, p.layer(node).context, p.head_ranks(node));
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                context_tokens_dgrad(context, p.layer(node).context, p.head_ranks(node));
              },
          .recompute = forward};
}

}  // namespace weft::train
