// Bodies of the pieces of a MoE layer.
#include "weft/base/check.h"
#include "weft/train/program/program_pieces.h"

namespace weft::train {
namespace {

using model::Context;
using schedule::Node;
using schedule::Part;

}  // namespace

Program::Bodies Program::Pieces::route_norm() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::LayerState& layer = p.layer(node);
    const model::LayerWeights& weights = p.layer_weights(node);
    model::norm_forward(context, layer.route.norm, layer.h_TD, weights.route.norm_D);
    if (weights.shared.fc1_FD.defined()) {
      model::take_shared_input(layer.shared, weights.shared, layer.route.norm.y_TD);
    }
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::LayerState& layer = p.layer(node);
                layer.dh_TD = model::norm_dgrad(context,
                                                layer.route.norm,
                                                layer.h_TD,
                                                p.layer_weights(node).route.norm_D,
                                                layer.dy_TD);
                layer.dy_TD.reset();
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::LayerState& layer = p.layer(node);
                model::norm_wgrad(context,
                                  layer.route.norm,
                                  layer.h_TD,
                                  p.layer_weights(node).route.norm_D);
                layer.route = {};
                layer.h_TD.reset();
              },
          .recompute = forward,
          .drop =
              [](Program& p, const Node& node) {
                p.layer(node).route.norm = {};
                model::drop_shared_input(p.layer(node).shared);
              }};
}

Program::Bodies Program::Pieces::route_choose() {
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                model::choose_forward(context,
                                      p.layer(node).route,
                                      p.layer_weights(node).route,
                                      p.totals_.router().of_layer(node.layer));
                p.lay_out(node, context);
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::LayerState& layer = p.layer(node);
                // Fixed order of the sum, whatever ran first: gradients through the rows, the
                // shared experts', the router's.
                if (layer.shared.ends.dx_TD.defined()) {
                  model::add_shared_gradient(context, layer.shared, layer.route.norm);
                }
                model::choose_dgrad(context,
                                    layer.route,
                                    p.layer_weights(node).route,
                                    p.totals_.router().of_layer(node.layer));
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::choose_wgrad(context, p.layer(node).route, p.layer_weights(node).route);
              },
          .recompute =
              [](Program& p, const Node& node, const Context& context) {
                model::choose_again(context, p.layer(node).route, p.layer_weights(node).route);
              },
          .drop = [](Program& p, const Node& node) { model::drop_choice(p.layer(node).route); },
          .output = [](Program& p, const Node& node) { return p.layer(node).route.logits_TE; }};
}

Program::Bodies Program::Pieces::route(Part part) {
  if (part == Part::Norm) return route_norm();
  CHECK(part == Part::Choose, "a route has no part {}", schedule::word(part));
  return route_choose();
}

Program::Bodies Program::Pieces::counts() {
  return {.forward = [](Program& p, const Node& node, const Context& context) {
    p.counts(node, context);
  }};
}

Program::Bodies Program::Pieces::balance() {
  return {.forward = [](Program& p, const Node& node, const Context& context) {
    model::balance_exchange(context, p.layer(node).route.balance, *p.groups_.replicas);
  }};
}

Program::Bodies Program::Pieces::tally() {
  return {.forward = [](Program& p, const Node& node, const Context& context) {
    model::balance_tally(context, p.layer(node).route.balance, *p.groups_.sharers);
  }};
}

Program::Bodies Program::Pieces::sizes() {
  return {.forward = [](Program& p, const Node& node, const Context&) { p.sizes(node); }};
}

Program::Bodies Program::Pieces::permute() {
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                p.dispatcher().permute_forward(context, p.slice(node).dispatch, p.routed(node));
              },
          .input_gradient = [](Program& p,
                               const Node& node,
                               const Context& context) { p.permute_gradient(node, context); },
          .recompute =
              [](Program& p, const Node& node, const Context& context) {
                p.dispatcher().permute_again(context,
                                             p.slice(node).dispatch,
                                             p.slice_of(p.layer(node).route.norm.y_TD, node));
              }};
}

Program::Bodies Program::Pieces::dispatch() {
  return {.forward =
              [](Program& p, const Node& node, const Context& context) {
                p.dispatcher().dispatch_forward(context, p.slice(node).dispatch);
              },
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                p.dispatcher().dispatch_dgrad(context, p.slice(node).dispatch);
              },
          .recompute =
              [](Program& p, const Node& node, const Context& context) {
                p.dispatcher().dispatch_again(context, p.slice(node).dispatch);
              }};
}

Program::Bodies Program::Pieces::experts_arrange() {
  return {
      .forward =
          [](Program& p, const Node& node, const Context& context) {
            model::SliceState& slice = p.slice(node);
            model::experts_arrange_forward(context, slice.experts, p.dispatcher(), slice.dispatch);
          },
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::SliceState& slice = p.slice(node);
            model::experts_arrange_dgrad(context, slice.experts, p.dispatcher(), slice.dispatch);
          },
      .recompute =
          [](Program& p, const Node& node, const Context& context) {
            model::SliceState& slice = p.slice(node);
            model::experts_arrange_again(context, slice.experts, p.dispatcher(), slice.dispatch);
          },
      .drop = [](Program& p,
                 const Node& node) { model::drop_experts_arrange(p.slice(node).experts); },
      .made = [](Program& p,
                 const Node& node) { return std::vector{&p.slice(node).experts.in.x_XD}; }};
}

Program::Bodies Program::Pieces::experts_fc1() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::experts_fc1_forward(context, p.slice(node).experts, p.layer_weights(node).experts);
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::experts_fc1_dgrad(context, p.slice(node).experts, p.layer_weights(node).experts);
          },
      .weight_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::experts_fc1_wgrad(context, p.slice(node).experts, p.layer_weights(node).experts);
          },
      .recompute = forward,
      .drop = [](Program& p, const Node& node) { model::drop_experts_fc1(p.slice(node).experts); },
      .made = [](Program& p,
                 const Node& node) { return std::vector{&p.slice(node).experts.fc1_X2F}; }};
}

Program::Bodies Program::Pieces::experts_act() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::experts_act_forward(context, p.slice(node).experts);
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::experts_act_dgrad(context, p.slice(node).experts);
          },
      .recompute = forward,
      .drop = [](Program& p, const Node& node) { model::drop_experts_act(p.slice(node).experts); }};
}

Program::Bodies Program::Pieces::experts_fc2() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::SliceState& slice = p.slice(node);
    model::experts_fc2_forward(context,
                               slice.experts,
                               p.layer_weights(node).experts,
                               p.dispatcher(),
                               slice.dispatch);
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::SliceState& slice = p.slice(node);
                model::experts_fc2_dgrad(context,
                                         slice.experts,
                                         p.layer_weights(node).experts,
                                         p.dispatcher(),
                                         slice.dispatch);
                p.drop_gradient_rows(node);
              },
          .weight_gradient =
              [](Program& p, const Node& node, const Context& context) {
                model::experts_fc2_wgrad(context,
                                         p.slice(node).experts,
                                         p.layer_weights(node).experts,
                                         p.dispatcher());
              },
          .recompute = forward,
          .makes_only_layer_output = true,
          .output = [](Program& p, const Node& node) { return p.slice(node).dispatch.output_RD; }};
}

Program::Bodies Program::Pieces::experts(Part part) {
  if (part == Part::Arrange) return experts_arrange();
  if (part == Part::Fc1) return experts_fc1();
  if (part == Part::Act) return experts_act();
  CHECK(part == Part::Fc2, "experts have no part {}", schedule::word(part));
  return experts_fc2();
}

Program::Bodies Program::Pieces::combine() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    p.dispatcher().combine_forward(context, p.slice(node).dispatch);
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                p.dispatcher().combine_dgrad(context, p.slice(node).dispatch);
              },
          .recompute = forward};
}

Program::Bodies Program::Pieces::merge() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    p.merge(node, context);
  };
  return {
      .forward = forward,
      .input_gradient = [](Program& p,
                           const Node& node,
                           const Context& context) { p.merge_gradient(node, context); },
      .recompute = forward,
      .drop_next_input = [](Program& p, const Node& node) { p.next_input(node).reset(); },
      .made = [](Program& p, const Node& node) { return std::vector{&p.next_input(node)}; },
      .output = [](Program& p, const Node& node) { return p.layer_input(node, node.layer + 1); }};
}

Program::Bodies Program::Pieces::shared_fc1() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::shared_fc1_forward(context, p.layer(node).shared, p.layer_weights(node).shared);
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::shared_fc1_dgrad(context, p.layer(node).shared, p.layer_weights(node).shared);
          },
      .weight_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::shared_fc1_wgrad(context, p.layer(node).shared, p.layer_weights(node).shared);
          },
      .recompute = forward,
      .drop = [](Program& p, const Node& node) { model::drop_shared_fc1(p.layer(node).shared); },
      .output = [](Program& p, const Node& node) { return p.layer(node).shared.act_TF; }};
}

Program::Bodies Program::Pieces::shared_fc2() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::shared_fc2_forward(context, p.layer(node).shared, p.layer_weights(node).shared);
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::shared_fc2_dgrad(context, p.layer(node).shared, p.layer_weights(node).shared);
          },
      .weight_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::shared_fc2_wgrad(context, p.layer(node).shared, p.layer_weights(node).shared);
          },
      .recompute = forward,
      .makes_only_layer_output = true,
      .output = [](Program& p, const Node& node) { return p.layer(node).shared.ends.y_TD; }};
}

Program::Bodies Program::Pieces::shared_gate() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    model::shared_gate_forward(context, p.layer(node).shared, p.layer_weights(node).shared);
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::shared_gate_dgrad(context, p.layer(node).shared, p.layer_weights(node).shared);
          },
      .weight_gradient =
          [](Program& p, const Node& node, const Context& context) {
            model::shared_gate_wgrad(context, p.layer(node).shared, p.layer_weights(node).shared);
          },
      .recompute = forward,
      .makes_only_layer_output = true,
      .output = [](Program& p, const Node& node) { return p.layer(node).shared.ends.y_TD; }};
}

Program::Bodies Program::Pieces::shared(Part part) {
  if (part == Part::Fc1) return shared_fc1();
  if (part == Part::Fc2) return shared_fc2();
  if (part == Part::Gate) return shared_gate();
  Bodies around = around_products(part);
  if (part == Part::Scatter) {
    around.recompute = around.forward;
    around.makes_only_layer_output = true;
  }
  return around;
}

}  // namespace weft::train
