// The bodies of attention and the dense feed-forward, between norm and residual.
#include "weft/train/program_pieces.h"

namespace weft::train {
namespace {

using model::Context;
using schedule::Node;
using schedule::Part;
using tensor::Tensor;

}  // namespace

// Latent attention stands in the place of the other: its functions have the same names.
template <typename Do>
void Program::with_attention(const Node& node, const Do& act) {
  model::LayerState& state = layer(node);
  const model::LayerWeights& weights = layer_weights(node);
  const model::LayerWeights& gradients = layer_gradients(node);
  if (config_.model.multi_latent_attention) {
    act(state.latent_attention, weights.latent_attention, gradients.latent_attention);
  } else {
    act(state.attention, weights.attention, gradients.attention);
  }
}

Program::Bodies Program::Pieces::attention_qkv() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    p.with_attention(node, [&](auto& state, const auto& weights, const auto&) {
      attention_qkv_forward(context, state, weights);
    });
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                p.with_attention(node, [&](auto& state, const auto& weights, const auto&) {
                  attention_qkv_dgrad(context, state, weights);
                });
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                p.with_attention(node, [&](auto& state, const auto&, const auto& gradients) {
                  attention_qkv_wgrad(context, state, gradients);
                });
              },
          .recompute = forward,
          .drop =
              [](Program& p, const Node& node) {
                p.with_attention(node, [](auto& state, const auto&, const auto&) {
                  drop_attention_qkv(state);
                });
              }};
}

Program::Bodies Program::Pieces::attention_core() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    p.with_attention(node, [&](auto& state, const auto&, const auto&) {
      attention_core_forward(context, state);
    });
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                p.with_attention(node, [&](auto& state, const auto&, const auto&) {
                  attention_core_dgrad(context, state);
                });
              },
          .recompute = forward,
          .drop =
              [](Program& p, const Node& node) {
                p.with_attention(node, [](auto& state, const auto&, const auto&) {
                  drop_attention_core(state);
                });
              }};
}

Program::Bodies Program::Pieces::attention_proj() {
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                p.with_attention(node, [&](auto& state, const auto& weights, const auto&) {
                  attention_proj_forward(context, state, weights);
                });
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                p.with_attention(node, [&](auto& state, const auto& weights, const auto&) {
                  attention_proj_dgrad(context, state, weights);
                });
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                p.with_attention(node, [&](auto& state, const auto&, const auto& gradients) {
                  attention_proj_wgrad(context, state, gradients);
                });
              }};
}

Program::Bodies Program::Pieces::attention(Part part) {
  if (part == Part::Qkv) return attention_qkv();
  if (part == Part::Core) return attention_core();
  if (part == Part::Proj) return attention_proj();
  return around_products(part);
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
                model::mlp_fc1_wgrad(context, p.layer(node).mlp, p.layer_gradients(node).mlp);
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
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                model::mlp_fc2_forward(context, p.layer(node).mlp, p.layer_weights(node).mlp);
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::mlp_fc2_dgrad(context, p.layer(node).mlp, p.layer_weights(node).mlp);
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::mlp_fc2_wgrad(context, p.layer(node).mlp, p.layer_gradients(node).mlp);
              }};
}

Program::Bodies Program::Pieces::mlp(Part part) {
  if (part == Part::Fc1) return mlp_fc1();
  if (part == Part::Act) return mlp_act();
  if (part == Part::Fc2) return mlp_fc2();
  return around_products(part);
}

}  // namespace weft::train
