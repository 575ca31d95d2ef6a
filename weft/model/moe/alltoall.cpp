#include "weft/model/moe/alltoall.h"

namespace weft::model {
namespace {

struct Direction {
  const std::vector<std::int64_t>& send;
  const std::vector<std::int64_t>& receive;
};

// Rows and, where there are any, their scalars, to the experts or back. A group of one moves
// nothing.
Tensor travel(const Context& context,
              comm::Communicator& ep,
              const Tensor& rows,
              Direction counts) {
  if (ep.size() == 1) return rows;
  std::int64_t total = 0;
  for (const std::int64_t n : counts.receive) total += n;
  const Shape shape = rows.shape().rank() == 2 ? Shape{total, rows.dim(1)} : Shape{total};
  Tensor received(context.pool, rows.dtype(), shape, Tag::Communication);
  ep.all_to_all(context.stream, received, rows, counts.receive, counts.send);
  return received;
}

Direction to_experts(const DispatchState& state) {
  return {.send = state.plan.send_rows, .receive = state.plan.receive_rows};
}

Direction back_home(const DispatchState& state) {
  return {.send = state.plan.receive_rows, .receive = state.plan.send_rows};
}

}  // namespace

void counts_forward(const Context& context,
                    DispatchState& state,
                    const RouteState& route,
                    comm::Communicator& ep) {
  if (ep.size() == 1) {
    state.counts_GE = route.counts_E;
    return;
  }
  const Shape shape{ep.size() * route.counts_E.dim(0)};
  state.counts_GE = Tensor(context.pool, DType::I64, shape, Tag::Communication);
  ep.all_gather(context.stream, state.counts_GE, route.counts_E);
}

void sizes_forward(DispatchState& state, const RouteState& route, const comm::Communicator& ep) {
  const std::int64_t experts = route.counts_E.dim(0);
  const std::span<const std::int64_t> counts(state.counts_GE.host<const std::int64_t>(),
                                             static_cast<std::size_t>(state.counts_GE.elements()));
  state.plan = plan_exchange(counts, ep.size(), ep.rank(), experts, route.slot_R.dim(0));
  state.counts_GE.reset();
}

void permute_forward(const Context& context, DispatchState& state, const RouteState& route) {
  const std::int64_t rows = route.token_R.dim(0);
  state.sent_RD = context.wire({rows, route.norm.y_TD.dim(1)});
  state.sent_p_R = context.wire_fp32({rows});
  kernels::gather_rows(context.stream, state.sent_RD, route.norm.y_TD, route.token_R);
  kernels::gather_rows(context.stream, state.sent_p_R, route.p_Tk.view({rows}), route.slot_R);
}

void dispatch_forward(const Context& context, DispatchState& state, comm::Communicator& ep) {
  state.received_XD = travel(context, ep, state.sent_RD, to_experts(state));
  state.received_p_X = travel(context, ep, state.sent_p_R, to_experts(state));
  state.sent_RD.reset();
  state.sent_p_R.reset();
}

void combine_forward(const Context& context, DispatchState& state, comm::Communicator& ep) {
  state.returned_RD = travel(context, ep, state.output_XD, back_home(state));
  state.output_XD.reset();
}

Tensor merge_forward(const Context& context,
                     DispatchState& state,
                     const RouteState& route,
                     const Tensor& h_TD) {
  Tensor y_TD = context.output(h_TD.shape());
  kernels::sum_rows(context.stream, y_TD, state.returned_RD, route.row_Tk);
  kernels::add(context.stream, y_TD, y_TD, h_TD);
  state.returned_RD.reset();
  return y_TD;
}

void merge_dgrad(const Context& context,
                 DispatchState& state,
                 const RouteState& route,
                 const Tensor& dy_TD) {
  state.dreturned_RD = context.wire({route.token_R.dim(0), dy_TD.dim(1)});
  kernels::gather_rows(context.stream, state.dreturned_RD, dy_TD, route.token_R);
}

void combine_dgrad(const Context& context, DispatchState& state, comm::Communicator& ep) {
  state.doutput_XD = travel(context, ep, state.dreturned_RD, to_experts(state));
  state.dreturned_RD.reset();
}

void dispatch_dgrad(const Context& context, DispatchState& state, comm::Communicator& ep) {
  state.dsent_p_R = travel(context, ep, state.dreceived_p_X, back_home(state));
  state.dsent_RD = travel(context, ep, state.dreceived_XD, back_home(state));
  state.dreceived_XD.reset();
  state.dreceived_p_X.reset();
}

void permute_dgrad(const Context& context, DispatchState& state, RouteState& route) {
  const std::int64_t rows = route.token_R.dim(0);
  route.norm.dy_TD = context.activation(route.norm.y_TD.shape());
  kernels::sum_rows(context.stream, route.norm.dy_TD, state.dsent_RD, route.row_Tk);
  route.dp_Tk = context.activation_fp32(route.p_Tk.shape());
  kernels::gather_rows(context.stream,
                       route.dp_Tk.view({rows}),
                       state.dsent_p_R,
                       route.row_Tk.view({rows}));
  state = {};
}

Tensor reorder(const Context& context,
               const DispatchState& state,
               const Tensor& rows,
               RowOrder to) {
  const auto& blocks =
      to == RowOrder::Expert ? state.plan.to_expert_order : state.plan.to_wire_order;
  if (blocks.empty()) return rows;
  const Tag tag = to == RowOrder::Expert ? Tag::Activations : Tag::Communication;
  Tensor moved(context.pool, rows.dtype(), rows.shape(), tag);
  kernels::copy_rows(context.stream, moved, rows, blocks);
  return moved;
}

}  // namespace weft::model
