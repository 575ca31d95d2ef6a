// The bodies of attention that context-parallel ranks share, and where the others hand over to it.
#include "weft/derive/layer_kind.h"
#include "weft/train/program_pieces.h"

namespace weft::train {
namespace {

using model::Context;
using schedule::Node;
using schedule::Part;
using tensor::Tensor;

}  // namespace

bool Program::shares_context(const Node& node) const {
  return derive::attention_sharing(config_.model, node.layer).is_shared();
}

bool Program::hands_to_context(const Node& node) const {
  Part last = derive::norms_across_ranks(config_.model) ? Part::Turn : Part::Qkv;
  if (config_.model.multi_latent_attention) last = Part::Expand;
  return node.part == last && shares_context(node);
}

model::ContextSharing Program::context_sharing(const Context& context, const Node& node) {
  model::ContextSharing sharing{.by = derive::attention_sharing(config_.model, node.layer)};
  sharing.key_rank = groups_.self.cp / sharing.by.head_ranks;
  with_attention(node, [&](const auto& state, const auto&, const auto&) {
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
  with_attention(node, [&](auto& state, const auto&, const auto&) {
    context_begin(context, sharing, layer(node).context, take_attended(context, state));
  });
}

void Program::end_context(const Context& context, const Node& node) {
  const model::ContextSharing sharing = context_sharing(context, node);
  with_attention(node, [&](auto& state, const auto&, const auto&) {
    put_output(state, context_end(context, sharing, layer(node).context));
  });
}

void Program::end_context_gradient(const Context& context, const Node& node) {
  const model::ContextSharing sharing = context_sharing(context, node);
  with_attention(node, [&](auto& state, const auto&, const auto&) {
    context_end_dgrad(context, sharing, layer(node).context, take_output_gradient(state));
  });
}

void Program::begin_context_gradient(const Context& context, const Node& node) {
  const model::ContextSharing sharing = context_sharing(context, node);
  model::ContextState& shared = layer(node).context;
  with_attention(node, [&](auto& state, const auto&, const auto&) {
    const std::int64_t tokens = context_tokens(sharing, shared);
    context_begin_dgrad(context, sharing, shared, attended_gradients(context, state, tokens));
  });
}

Program::Bodies Program::Pieces::context_heads() {
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                context_heads_forward(context, p.layer(node).context, p.head_ranks(node));
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                context_heads_dgrad(context, p.layer(node).context, p.head_ranks(node));
              }};
}

Program::Bodies Program::Pieces::context_arrange() {
  return {
      .forward =
          [](Program& p, const Node& node, const Context& context) {
            context_arrange_forward(context,
                                    p.context_sharing(context, node),
                                    p.layer(node).context);
          },
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            context_arrange_dgrad(context, p.context_sharing(context, node), p.layer(node).context);
          }};
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
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                context_tokens_forward(context, p.layer(node).context, p.head_ranks(node));
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                context_tokens_dgrad(context, p.layer(node).context, p.head_ranks(node));
              }};
}

}  // namespace weft::train
