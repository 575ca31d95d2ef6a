// Bodies of attention and the dense feed-forward, between norm and residual.
#include "weft/train/program/program_pieces.h"

namespace weft::train {
namespace {

using model::Context;
using schedule::Node;
using schedule::Part;
using tensor::Tensor;

}  // namespace

Program::Bodies Program::Pieces::attention_qkv() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    p.with_attention(node, [&](auto& state, const auto& weights) {
      attention_qkv_forward(context, state, weights);
    });
    if (p.is_last_before_context(node) && context.closes()) p.begin_context(context, node);
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                if (p.is_last_before_context(node) && context.opens()) {
                  p.begin_context_gradient(context, node);
                }
                p.with_attention(node, [&](auto& state, const auto& weights) {
                  attention_qkv_dgrad(context, state, weights);
                });
                if (p.keeps_several_weight_gradients() && context.closes())
                  p.norm_weights_early(context, node);
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                p.with_attention(node, [&](auto& state, const auto& weights) {
                  attention_qkv_wgrad(context, state, weights);
                });
              },
          .recompute = forward,
          .drop =
              [](Program& p, const Node& node) {
                p.with_attention(node, [](auto& state, const auto&) { drop_attention_qkv(state); });
                p.drop_in_context(node);
              },
          .made = [](Program& p, const Node& node) { return p.offloaded_of_qkv(node); },
          .take_back =
              [](Program& p, const Node& node, const Context& context) {
                const model::AttentionWeights& weights = p.layer_weights(node).attention;
                // Without a norm attention reads the copy that came back.
                const bool is_made_again = weights.q_norm.defined() && !p.exchanges_heads(node);
                if (!is_made_again) return;
                attention_turn_forward(context, p.layer(node).attention, weights);
                if (p.is_last_before_context(node)) p.begin_context(context, node);
              }};
}

bool Program::keeps_several_weight_gradients() const {
  return anatomy_.flow.weight_gradients == schedule::WeightGradients::InTurns &&
         anatomy_.pp_rank > 0;
}

// Norm gradients of queries and keys are small but read large tensors. They run at once instead of
// waiting with the products' weight gradients.
void Program::norm_weights_early(const Context& context, Node node) {
  node.direction = schedule::Direction::W;
  model::attention_norms_wgrad(this->context(node, context.stream),
                               layer(node).attention,
                               layer_weights(node).attention);
}

// Latent attention only.
Program::Bodies Program::Pieces::attention_expand() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    attention_expand_forward(context,
                             p.layer(node).latent_attention,
                             p.layer_weights(node).latent_attention);
    if (p.is_last_before_context(node)) p.begin_context(context, node);
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                if (p.is_last_before_context(node)) p.begin_context_gradient(context, node);
                attention_expand_dgrad(context,
                                       p.layer(node).latent_attention,
                                       p.layer_weights(node).latent_attention);
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                attention_expand_wgrad(context,
                                       p.layer(node).latent_attention,
                                       p.layer_weights(node).latent_attention);
              },
          .recompute = forward,
          .drop =
              [](Program& p, const Node& node) {
                drop_attention_expand(p.layer(node).latent_attention);
                p.drop_in_context(node);
              },
          .made =
              [](Program& p, const Node& node) {
                std::vector<Tensor*> made = made_by_expand(p.layer(node).latent_attention);
                if (p.feeds_context_without_exchange(node)) {
                  const std::vector<Tensor*> attended = p.attended_in_context(node);
                  made.insert(made.end(), attended.begin(), attended.end());
                }
                return made;
              }};
}

// Sums the squares over the ranks that share a norm of queries and keys, in both directions.
Program::Bodies Program::Pieces::attention_squares() {
  const Body add = [](Program& p, const Node& node, const Context& context) {
    p.groups_.tp->all_reduce(context.stream, p.layer(node).attention.sums_2T, comm::Reduce::Sum);
  };
  return {.forward = add, .input_gradient = add};
}

Program::Bodies Program::Pieces::attention_turn() {
  return {
      .forward =
          [](Program& p, const Node& node, const Context& context) {
            attention_turn_forward(context,
                                   p.layer(node).attention,
                                   p.layer_weights(node).attention);
            if (p.is_last_before_context(node)) p.begin_context(context, node);
          },
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            if (p.is_last_before_context(node)) p.begin_context_gradient(context, node);
            attention_turn_dgrad(context, p.layer(node).attention, p.layer_weights(node).attention);
          }};
}

Program::Bodies Program::Pieces::attention_core() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    if (p.attends_across_ranks(node)) {
      const model::ContextSharing sharing = p.context_sharing(context, node);
      model::ContextState& shared = p.layer(node).context;
      context_core_forward(context, sharing, shared, step_of(node));
      return context_send_output(context, sharing, shared);
    }
    p.with_attention(node,
                     [&](auto& state, const auto&) { attention_core_forward(context, state); });
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                if (p.attends_across_ranks(node)) {
                  return context_core_dgrad(context,
                                            p.context_sharing(context, node),
                                            p.layer(node).context,
                                            step_of(node));
                }
                p.with_attention(node, [&](auto& state, const auto&) {
                  attention_core_dgrad(context, state);
                });
              },
          .recompute =
              [](Program& p, const Node& node, const Context& context) {
                if (p.attends_across_ranks(node)) return p.attend_again(context, node);
                p.with_attention(node, [&](auto& state, const auto&) {
                  attention_core_forward(context, state);
                });
              },
          .drop =
              [](Program& p, const Node& node) {
                for (Tensor* made : p.made_by_core(node)) made->reset();
                if (!p.exchanges_heads(node)) p.attention_output(node).reset();
              },
          .made = [](Program& p, const Node& node) { return p.made_by_core(node); },
          .take_back =
              [](Program& p, const Node& node, const Context& context) {
                const bool is_read = p.attends_across_ranks(node) && !p.exchanges_heads(node);
                if (is_read) p.end_context(context, node);
              }};
}

Program::Bodies Program::Pieces::attention_proj() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    if (p.attends_across_ranks(node) && context.opens()) p.end_context(context, node);
    p.with_attention(node, [&](auto& state, const auto& weights) {
      attention_proj_forward(context, state, weights);
    });
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            p.with_attention(node, [&](auto& state, const auto& weights) {
              attention_proj_dgrad(context, state, weights);
            });
            if (p.attends_across_ranks(node) && context.closes()) {
              p.end_context_gradient(context, node);
            }
          },
      .weight_gradient =
          [](Program& p, const Node& node, const Context& context) {
            p.with_attention(node, [&](auto& state, const auto& weights) {
              attention_proj_wgrad(context, state, weights);
            });
          },
      .recompute = forward,
      .drop =
          [](Program& p, const Node& node) {
            if (p.exchanges_heads(node)) p.attention_output(node).reset();
          },
      .made = [](Program& p, const Node& node) { return std::vector{&p.attention_output(node)}; }};
}

Program::Bodies Program::Pieces::attention(Part part) {
  if (part == Part::Qkv) return attention_qkv();
  if (part == Part::Expand) return attention_expand();
  if (part == Part::Squares) return attention_squares();
  if (part == Part::Turn) return attention_turn();
  if (part == Part::Core) return attention_core();
  if (part == Part::Proj) return attention_proj();
  if (part == Part::Heads) return context_heads();
  if (part == Part::Arrange) return context_arrange();
  if (part == Part::Ring) return context_ring();
  if (part == Part::Keys) return context_keys();
  if (part == Part::Tokens) return context_tokens();
  Bodies around = around_products(part);
  // Its output is read inside the layer and can be recomputed.
  if (part == Part::Scatter || part == Part::Add) around.recompute = around.forward;
  if (part == Part::Add) {
    around.drop = [](Program& p, const Node& node) { p.layer(node).h_TD.reset(); };
    around.made = [](Program& p, const Node& node) { return std::vector{&p.layer(node).h_TD}; };
  }
  return around;
}

Program::Bodies Program::Pieces::mlp_fc1() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::mlp_fc1_forward(context, p.layer(node).mlp, p.layer_weights(node).mlp);
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::mlp_fc1_dgrad(context, p.layer(node).mlp, p.layer_weights(node).mlp);
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::mlp_fc1_wgrad(context, p.layer(node).mlp, p.layer_weights(node).mlp);
              },
          .recompute = forward,
          .drop = [](Program& p, const Node& node) { model::drop_mlp_fc1(p.layer(node).mlp); }};
}

Program::Bodies Program::Pieces::mlp_act() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::mlp_act_forward(context, p.layer(node).mlp);
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::mlp_act_dgrad(context, p.layer(node).mlp);
              },
          .recompute = forward,
          .drop = [](Program& p, const Node& node) { model::drop_mlp_act(p.layer(node).mlp); }};
}

Program::Bodies Program::Pieces::mlp_fc2() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::mlp_fc2_forward(context, p.layer(node).mlp, p.layer_weights(node).mlp);
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::mlp_fc2_dgrad(context, p.layer(node).mlp, p.layer_weights(node).mlp);
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::mlp_fc2_wgrad(context, p.layer(node).mlp, p.layer_weights(node).mlp);
              },
          .recompute = forward,
          .makes_only_layer_output = true};
}

Program::Bodies Program::Pieces::mlp(Part part) {
  if (part == Part::Fc1) return mlp_fc1();
  if (part == Part::Act) return mlp_act();
  if (part == Part::Fc2) return mlp_fc2();
  Bodies around = around_products(part);
  if (part == Part::Scatter || part == Part::Add) {
    around.recompute = around.forward;
    around.makes_only_layer_output = true;
  }
  if (part == Part::Add) {
    around.drop_next_input = [](Program& p, const Node& node) { p.next_input(node).reset(); };
    around.made = [](Program& p, const Node& node) { return std::vector{&p.next_input(node)}; };
  }
  return around;
}

}  // namespace weft::train
