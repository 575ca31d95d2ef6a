// Bodies of the parts around the products of a sub-layer: the norm, the exchange of tensor-parallel
// ranks and the residual.
#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/model/product_exchange.h"
#include "weft/train/program/program_pieces.h"

namespace weft::train {
namespace {

using model::Context;
using model::ProductEnds;
using schedule::Node;
using schedule::Part;
using schedule::Piece;
using tensor::Tensor;

}  // namespace

// Common view of attention and a dense feed-forward.
struct Program::SubLayer {
  model::NormState& norm;
  ProductEnds& ends;
  Tensor& x_TD;
  Tensor& dy_TD;  // gradient of its output
  const model::Weight& w_D;
};

Program::SubLayer Program::sub_layer(const Node& node) {
  model::LayerState& state = layer(node);
  const model::LayerWeights& weights = layer_weights(node);
  const auto attention = [&](auto& own, const model::Weight& w_D) {
    return SubLayer{own.norm, own.ends, state.x_TD, state.dh_TD, w_D};
  };
  if (node.piece == Piece::Mlp) {
    return {.norm = state.mlp.norm,
            .ends = state.mlp.ends,
            .x_TD = state.h_TD,
            .dy_TD = state.dy_TD,
            .w_D = weights.mlp.norm_D};
  }
  CHECK(node.piece == Piece::Attention, "{} is no sub-layer", schedule::print(node));
  return config_.model.multi_latent_attention
             ? attention(state.latent_attention, weights.latent_attention.norm_D)
             : attention(state.attention, weights.attention.norm_D);
}

ProductEnds& Program::product_ends(const Node& node) {
  return node.piece == Piece::Shared ? layer(node).shared.ends : sub_layer(node).ends;
}

// In a gather, step i handles the rank i positions before this one. In a scatter, it handles the
// rank ahead by the number of remaining steps.
//
// A step that runs again without its row budget has pieces unknown to this anatomy; none of them
// runs in steps.
std::optional<model::ProductStep> Program::product_step(const Node& node) const {
  if (node.slice == schedule::kNone || node.part == Part::None) return std::nullopt;
  const schedule::PieceAnatomy& piece = schedule::piece_of(anatomy_, node);
  const bool is_product = piece.steps && piece.steps->exchange != Part::Ring;
  if (!is_product || !piece.runs_in_steps(node.direction)) return std::nullopt;
  const std::int64_t ranks = groups_.grid.tp(), self = groups_.self.tp;
  const std::int64_t away =
      piece.steps->exchange == Part::Gather ? -node.slice : ranks - 1 - node.slice;
  const bool forward = node.direction == schedule::Direction::F;
  const bool is_first = node.slice == piece.steps->first;
  const bool is_last = node.slice == piece.steps->last();
  return model::ProductStep{.ranks = ranks,
                            .rows = micro_batches_[base::at(node.micro_batch)].tokens,
                            .rank = (self + away + ranks) % ranks,
                            .mirror = (self - away + ranks) % ranks,
                            .is_own = away == 0,
                            .opens = forward ? is_first : is_last,
                            .closes = forward ? is_last : is_first};
}

// A part that ran in steps is recomputed at once, with the products of its steps.
std::int64_t Program::product_parts(const Node& node) const {
  if (node.direction != schedule::Direction::R || node.part == Part::None) return 1;
  const schedule::PieceAnatomy& piece = schedule::piece_of(anatomy_, node);
  const bool had_steps = piece.steps && piece.steps->exchange != Part::Ring;
  return had_steps ? groups_.grid.tp() : 1;
}

Program::Bodies Program::Pieces::sub_layer_norm() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    const SubLayer at = p.sub_layer(node);
    model::sub_layer_norm_forward(context, at.norm, at.ends, at.x_TD, at.w_D);
  };
  return {
      .forward = forward,
      .input_gradient =
          [](Program& p, const Node& node, const Context& context) {
            const SubLayer at = p.sub_layer(node);
            Tensor dx_TD =
                model::sub_layer_norm_dgrad(context, at.norm, at.ends, at.x_TD, at.w_D, at.dy_TD);
            at.dy_TD.reset();
            if (node.piece == Piece::Mlp) {
              p.layer(node).dh_TD = std::move(dx_TD);
            } else {
              p.hand_back(node, std::move(dx_TD));
            }
          },
      .weight_gradient =
          [](Program& p, const Node& node, const Context& context) {
            const SubLayer at = p.sub_layer(node);
            model::sub_layer_norm_wgrad(context, at.norm, at.x_TD, at.w_D);
            at.x_TD.reset();
          },
      .recompute = forward,
      .drop =
          [](Program& p, const Node& node) {
            const SubLayer at = p.sub_layer(node);
            model::drop_sub_layer_norm(at.norm, at.ends);
          },
      .made =
          [](Program& p, const Node& node) {
            model::NormState& norm = p.sub_layer(node).norm;
            return std::vector{&norm.y_TD, &norm.rstd_T1};
          },
      .take_back =
          [](Program& p, const Node& node, const Context&) {
            const SubLayer at = p.sub_layer(node);
            at.ends.take_input(at.norm.y_TD);
          }};
}

// The residual passes its gradient unchanged to both inputs.
Program::Bodies Program::Pieces::sub_layer_add() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    const SubLayer at = p.sub_layer(node);
    Tensor sum_TD = model::residual_forward(context, at.ends, at.x_TD);
    if (node.piece == Piece::Mlp) {
      p.hand_on(node, std::move(sum_TD));
    } else {
      p.layer(node).h_TD = std::move(sum_TD);
    }
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context&) {
                const SubLayer at = p.sub_layer(node);
                at.ends.dy_TD = at.dy_TD;
              },
          .output =
              [](Program& p, const Node& node) {
                return node.piece == Piece::Mlp ? p.layer_input(node, node.layer + 1)
                                                : p.layer(node).h_TD;
              }};
}

// All-gathers the tokens of the group, each rank's share in rank order.
Tensor Program::gathered(const Context& context, const Tensor& own_TD) {
  Tensor all_TD(context.pool,
                own_TD.dtype(),
                {own_TD.dim(0) * groups_.tp->size(), own_TD.dim(1)},
                tensor::Tag::Activations);
  groups_.tp->all_gather(context.stream, all_TD, own_TD);
  return all_TD;
}

// Reduce-scatters into `own`, this rank's share of the tokens.
Tensor Program::scattered(const Context& context, const Tensor& all_TD, Tensor own_TD) {
  groups_.tp->reduce_scatter(context.stream, own_TD, all_TD);
  return own_TD;
}

Program::Bodies Program::Pieces::gather_tokens() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    ProductEnds& ends = p.product_ends(node);
    if (context.step) return model::bring_product_input(context, ends, *p.groups_.tp);
    ends.x_TD = p.gathered(context, ends.own_x_TD);
  };
  return {.forward = forward,
          .input_gradient =
              [](Program& p, const Node& node, const Context& context) {
                ProductEnds& ends = p.product_ends(node);
                if (context.step) {
                  return model::send_product_input_gradient(context, ends, *p.groups_.tp);
                }
                Tensor& dx_TD = ends.dx_TD;
                dx_TD = p.scattered(
                    context,
                    dx_TD,
                    context.activation({dx_TD.dim(0) / p.groups_.tp->size(), dx_TD.dim(1)}));
              },
          .recompute = forward,
          .drop = [](Program& p, const Node& node) { p.product_ends(node).x_TD.reset(); }};
}

Program::Bodies Program::Pieces::scatter_tokens() {
  const Body forward = [](Program& p, const Node& node, const Context& context) {
    ProductEnds& ends = p.product_ends(node);
    if (context.step) return model::send_product_output(context, ends, *p.groups_.tp);
    Tensor& y_TD = ends.y_TD;
    const tensor::Shape own{y_TD.dim(0) / p.groups_.tp->size(), y_TD.dim(1)};
    const bool makes_layer_output = node.piece == Piece::Mlp;
    y_TD = p.scattered(context,
                       y_TD,
                       makes_layer_output ? context.output(own) : context.activation(own));
  };
  return {.forward = forward,
          .input_gradient = [](Program& p, const Node& node, const Context& context) {
            ProductEnds& ends = p.product_ends(node);
            if (context.step) {
              return model::bring_product_output_gradient(context, ends, *p.groups_.tp);
            }
            Tensor& dy_TD = ends.dy_TD;
            dy_TD = p.gathered(context, dy_TD);
          }};
}

Program::Bodies Program::Pieces::around_products(Part part) {
  if (part == Part::Norm) return sub_layer_norm();
  if (part == Part::Gather) return gather_tokens();
  if (part == Part::Scatter) return scatter_tokens();
  CHECK(part == Part::Add, "a sub-layer has no part {}", schedule::word(part));
  return sub_layer_add();
}

}  // namespace weft::train
