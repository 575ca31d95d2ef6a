// MoE layers. A slice is the part of a micro-batch's tokens that is dispatched together, or all of
// them.
#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/model/moe/exchange.h"
#include "weft/train/program/program.h"

namespace weft::train {
namespace {

using tensor::DType;
using tensor::Tag;
using tensor::Tensor;

using base::at;

}  // namespace

const model::Dispatcher& Program::dispatcher() const {
  return budget_ == config::RowBudget::Lifted ? *unbounded_ : *bounded_;
}

model::SliceState& Program::slice(const Node& node) {
  return layer(node).slices[at(node.slice == schedule::kNone ? 0 : node.slice)];
}

// Rows of a slice's tokens.
Tensor Program::slice_of(const Tensor& whole, const Node& node) const {
  if (node.slice == schedule::kNone) return whole;
  const std::int64_t tokens = whole.dim(0), slices = anatomy_.flow.slices;
  const std::int64_t begin = tokens * node.slice / slices;
  return whole.rows(begin, tokens * (node.slice + 1) / slices - begin);
}

model::Routed Program::routed(const Node& node) {
  const model::RouteState& route = layer(node).route;
  const Tensor x_TD = slice_of(route.norm.y_TD, node);
  return {.x_TD = x_TD,
          .p_Tk = slice_of(route.p_Tk, node),
          .experts_Tk = slice_of(route.experts_Tk, node),
          .most_tokens = x_TD.dim(0)};
}

// The layout of rows is part of routing, so that the exchange of counts overlaps the permutation.
void Program::lay_out(const Node& node, const model::Context& context) {
  model::LayerState& state = layer(node);
  const std::int64_t slices = anatomy_.flow.slices, numbers = dispatcher().counts();
  state.slices.resize(at(slices));
  if (numbers > 0) {
    state.counts_SN = Tensor(pool_, DType::I64, {slices * numbers}, Tag::Activations);
  }
  std::int64_t begin = 0;
  for (const Node& part : slices_of(node)) {
    const Tensor counts_N = numbers > 0 ? state.counts_SN.rows(begin, numbers) : Tensor();
    dispatcher().lay_out(context, slice(part).dispatch, routed(part), counts_N);
    begin += numbers;
  }
  if (numbers > 0) kernels::seal_counts(context.stream, state.counts_SN, groups_.ep->rank());
}

void Program::counts(const Node& node, const model::Context& context) {
  model::LayerState& state = layer(node);
  const Tensor table = model::gather_counts(context, *groups_.ep, std::move(state.counts_SN));
  if (dispatcher().host_learns()) {
    state.shown_GN = model::show_to_host(context, table);
    return;
  }
  kernels::open_counts(context.stream, table);
  const std::int64_t each = dispatcher().counts();
  for (std::size_t i = 0; i < state.slices.size(); ++i) {
    dispatcher().plan_on_device(context,
                                state.slices[i].dispatch,
                                table.columns(static_cast<std::int64_t>(i) * each, each),
                                totals_.overflow());
  }
}

void Program::sizes(const Node& node) {
  model::LayerState& state = layer(node);
  model::open_counts(state.shown_GN);
  const std::int64_t each = dispatcher().counts();
  for (std::size_t i = 0; i < state.slices.size(); ++i) {
    dispatcher().plan_on_host(state.slices[i].dispatch,
                              state.shown_GN.columns(static_cast<std::int64_t>(i) * each, each));
  }
  state.shown_GN.reset();
}

void Program::merge(const Node& node, const model::Context& context) {
  model::LayerState& state = layer(node);
  Tensor y_TD = context.output(state.h_TD.shape());
  for (const Node& part : slices_of(node)) {
    dispatcher().merge_forward(context,
                               slice(part).dispatch,
                               slice_of(y_TD, part),
                               slice_of(state.h_TD, part));
  }
  if (state.shared.ends.y_TD.defined()) model::add_shared_output(context, state.shared, y_TD);
  hand_on(node, std::move(y_TD));
}

void Program::merge_gradient(const Node& node, const model::Context& context) {
  model::LayerState& state = layer(node);
  for (const Node& part : slices_of(node)) {
    dispatcher().merge_dgrad(context, slice(part).dispatch, slice_of(state.dy_TD, part));
  }
  if (layer_weights(node).shared.fc1_FD.defined()) state.shared.ends.dy_TD = state.dy_TD;
}

// Drops the gradient rows while several micro-batches wait for weight gradients. A row per expert
// of a token would exceed the forward's kept state; a row per token does not.
void Program::drop_gradient_rows(const Node& node) {
  if (!keeps_several_weight_gradients() || dispatcher().moves_rows()) return;
  model::SliceState& part = slice(node);
  model::drop_experts_gradient_rows(part.experts, part.dispatch, slice_of(layer(node).dy_TD, node));
}

// The first slice to arrive allocates for all slices.
void Program::permute_gradient(const Node& node, const model::Context& context) {
  model::RouteState& route = layer(node).route;
  if (!route.dp_Tk.defined()) {
    route.norm.dy_TD = context.activation(route.norm.y_TD.shape());
    route.dp_Tk = context.activation_fp32({route.norm.y_TD.dim(0), config_.model.moe_router_topk});
  }
  dispatcher().permute_dgrad(
      context,
      slice(node).dispatch,
      {.dx_TD = slice_of(route.norm.dy_TD, node), .dp_Tk = slice_of(route.dp_Tk, node)});
}

// Slices of a piece with one node for all of them.
std::vector<schedule::Node> Program::slices_of(const Node& node) const {
  if (anatomy_.flow.slices == 1) return {node};
  std::vector<Node> parts(at(anatomy_.flow.slices), node);
  for (int i = 0; i < anatomy_.flow.slices; ++i) parts[at(i)].slice = i;
  return parts;
}

}  // namespace weft::train
