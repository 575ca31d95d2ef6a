#include "weft/model/moe/alltoall.h"

namespace weft::model {
namespace {

using comm::Content;
using comm::RowOrder;

struct Direction {
  comm::RowCounts send, receive;
};

// Moves rows or their scalars to the experts or back. A group of one moves no data; dropped slots
// have no rows, but room at the end.
Tensor travel(const Context& context,
              comm::Communicator& ep,
              const Tensor& rows,
              const Direction& counts,
              Content content,
              Tag tag = Tag::Communication) {
  std::int64_t total = 0;
  for (const std::int64_t n : counts.receive.counts) total += n;
  if (ep.size() == 1) return rows.rows(0, total);
  const Shape shape = rows.shape().rank() == 2 ? Shape{total, rows.dim(1)} : Shape{total};
  Tensor received(context.pool, rows.dtype(), shape, tag);
  ep.all_to_all(context.stream, received, rows, counts.receive, counts.send, content);
  return received;
}

// The exchange itself puts rows into expert order, and back on return: each expert's rows are a
// block.
Direction to_experts(const Exchange& plan) {
  return {.send = plan.send_blocks, .receive = {plan.receive_blocks, RowOrder::ByBlock}};
}

Direction back_home(const Exchange& plan) {
  return {.send = {plan.receive_blocks, RowOrder::ByBlock}, .receive = plan.send_blocks};
}

// Scalars travel in wire order and are sorted on arrival: a block of them is too small for a
// message. No copy is made if both orders are equal.
enum class ScalarOrder { Expert, Wire };

Tensor reorder(const Context& context,
               const DispatchState& state,
               const Tensor& p,
               ScalarOrder to) {
  const auto& blocks =
      to == ScalarOrder::Expert ? state.plan.to_expert_order : state.plan.to_wire_order;
  if (blocks.empty()) return p;
  const Tag tag = to == ScalarOrder::Expert ? Tag::Activations : Tag::Communication;
  Tensor moved(context.pool, p.dtype(), p.shape(), tag);
  kernels::copy_rows(context.stream, moved, p, blocks);
  return moved;
}

}  // namespace

AllToAll::AllToAll(const config::ModelConfig& config, comm::Communicator& ep)
    : Dispatcher(config.expert_grid()),
      config_(config),
      ep_(ep),
      padded_(config.moe_pad_expert_input_to_capacity) {}

void AllToAll::lay_out_rows(const Context& context,
                            DispatchState& state,
                            const Routed& routed,
                            const Tensor& counts_N) const {
  const std::int64_t tokens = routed.experts_Tk.dim(0);
  const std::int64_t capacity = padded_ ? config_.expert_capacity(routed.most_tokens) : 0;
  const std::int64_t rows = padded_ ? grid().experts * capacity : tokens * grid().per_token;
  state.most_tokens = routed.most_tokens;
  state.row_Tk = context.integers({tokens, grid().per_token});
  state.slot_R = context.integers({rows});
  state.token_R = context.integers({rows});
  const Tensor counts_E =
      padded_ ? Tensor(context.pool, DType::I64, {grid().experts}, Tag::Activations) : counts_N;
  kernels::sort_by_expert(context.stream,
                          state.row_Tk,
                          state.slot_R,
                          state.token_R,
                          counts_E,
                          routed.experts_Tk,
                          0,
                          padded_ ? kernels::Room::Padded : kernels::Room::Packed);
  if (!padded_) return;
  const std::vector<std::int64_t> equal(static_cast<std::size_t>(ep_.size() * grid().experts),
                                        capacity);
  state.plan = plan_exchange(equal, ep_.size(), ep_.rank(), grid().experts, rows);
}

void AllToAll::plan_on_host(DispatchState& state, const Tensor& shown_GN) const {
  state.counts_GN = shown_GN;
  state.plan = plan_exchange(counts_on_host(shown_GN),
                             ep_.size(),
                             ep_.rank(),
                             grid().experts,
                             state.most_tokens * grid().per_token);
}

void AllToAll::permute_rows(const Context& context,
                            DispatchState& state,
                            const Routed& routed) const {
  const std::int64_t rows = state.token_R.dim(0), slots = routed.p_Tk.elements();
  state.sent.rows_RD = wire_rows(context, state, routed.x_TD);
  state.sent.p = context.wire_fp32({rows});
  kernels::gather_rows(context.stream, state.sent.p, routed.p_Tk.view({slots}), state.slot_R);
  state.slot_R.reset();
}

void AllToAll::dispatch_forward(const Context& context, DispatchState& state) const {
  const Exchange& plan = state.plan;
  state.received.rows_RD = rows_at_experts(context, state, state.sent.rows_RD);
  state.received.p = travel(context,
                            ep_,
                            state.sent.p,
                            {.send = plan.send_rows, .receive = plan.receive_rows},
                            Content::Probabilities);
  state.sent = {};
}

ExpertRows AllToAll::arrange_forward(const Context& context, DispatchState& state) const {
  const std::int64_t local = grid().local();
  ExpertRows rows{.x_XD = state.received.rows_RD,
                  .p_X = reorder(context, state, state.received.p, ScalarOrder::Expert),
                  .rows_L = Tensor(context.pool, DType::I64, {local}, Tag::Activations)};
  if (padded_) {
    kernels::fill(context.stream, rows.rows_L, state.plan.received / local);
  } else {
    kernels::sum_counts(context.stream, rows.rows_L, state.counts_GN, ep_.rank() * local);
  }
  state.received = {};
  state.counts_GN.reset();
  return rows;
}

void AllToAll::restore_forward(const Context&,
                               DispatchState& state,
                               const Tensor& output_XD) const {
  state.output_RD = output_XD;
}

void AllToAll::combine_forward(const Context& context, DispatchState& state) const {
  state.returned_RD =
      travel(context, ep_, state.output_RD, back_home(state.plan), Content::Payload);
  state.output_RD.reset();
}

void AllToAll::merge_forward(const Context& context,
                             DispatchState& state,
                             const Tensor& y_TD,
                             const Tensor& h_TD) const {
  merge_rows(context, y_TD, h_TD, state.returned_RD, state.row_Tk);
  state.returned_RD.reset();
}

Tensor AllToAll::wire_rows(const Context& context,
                           const DispatchState& state,
                           const Tensor& x_TD) const {
  Tensor rows_RD = context.wire({state.token_R.dim(0), x_TD.dim(1)});
  kernels::gather_rows(context.stream, rows_RD, x_TD, state.token_R);
  return rows_RD;
}

Tensor AllToAll::rows_at_experts(const Context& context,
                                 const DispatchState& state,
                                 const Tensor& rows_RD) const {
  return travel(context, ep_, rows_RD, to_experts(state.plan), Content::Payload, Tag::Activations);
}

Tensor AllToAll::rows_by_expert(const Context&, const DispatchState&, const Tensor& rows_RD) const {
  return rows_RD;
}

void AllToAll::restore_dgrad(const Context& context,
                             DispatchState& state,
                             const Tensor& dx_XD,
                             const Tensor& dp_X) const {
  state.dreceived.rows_RD = dx_XD;
  state.dreceived.p = reorder(context, state, dp_X, ScalarOrder::Wire);
}

void AllToAll::dispatch_dgrad(const Context& context, DispatchState& state) const {
  const Exchange& plan = state.plan;
  state.dsent.p = travel(context,
                         ep_,
                         state.dreceived.p,
                         {.send = plan.receive_rows, .receive = plan.send_rows},
                         Content::Probabilities);
  state.dsent.rows_RD =
      travel(context, ep_, state.dreceived.rows_RD, back_home(plan), Content::Payload);
  state.dreceived = {};
}

void AllToAll::permute_rows_dgrad(const Context& context,
                                  DispatchState& state,
                                  const RoutedGradient& gradient) const {
  const std::int64_t slots = state.row_Tk.elements();
  kernels::sum_rows(context.stream, gradient.dx_TD, state.dsent.rows_RD, state.row_Tk);
  kernels::gather_rows(context.stream,
                       gradient.dp_Tk.view({slots}),
                       state.dsent.p,
                       state.row_Tk.view({slots}));
  state = {};
}

}  // namespace weft::model
