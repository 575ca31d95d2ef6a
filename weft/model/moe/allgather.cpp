#include "weft/model/moe/allgather.h"

#include "weft/model/moe/sorting.h"

namespace weft::model {
namespace {

using comm::Content;

// `rows` padded to the longest list of any rank; the same tensor if it is that long.
Tensor with_room(const Context& context, const Tensor& rows, std::int64_t most) {
  const std::int64_t tokens = rows.dim(0);
  if (tokens == most) return rows;
  Tensor roomy(context.pool, rows.dtype(), {most, rows.dim(1)}, Tag::Communication);
  const kernels::RowBlock all{.from = 0, .to = 0, .rows = tokens};
  kernels::copy_rows(context.stream, roomy, rows, {&all, 1});
  return roomy;
}

Tensor gather(const Context& context, comm::Communicator& ep, const Tensor& own, Content content) {
  if (ep.size() == 1) return own;
  const Shape shape{ep.size() * own.dim(0), own.dim(1)};
  Tensor all(context.pool, own.dtype(), shape, Tag::Communication);
  ep.all_gather(context.stream, all, own, content);
  return all;
}

Tensor scatter_sums(const Context& context,
                    comm::Communicator& ep,
                    const Tensor& all,
                    Content content) {
  if (ep.size() == 1) return all;
  const Shape shape{all.dim(0) / ep.size(), all.dim(1)};
  Tensor own(context.pool, all.dtype(), shape, Tag::Communication);
  ep.reduce_scatter(context.stream, own, all, content);
  return own;
}

}  // namespace

AllGather::AllGather(const config::ModelConfig& config, comm::Communicator& ep)
    : Dispatcher(config.expert_grid()),
      config_(config),
      ep_(ep),
      padded_(config.moe_pad_expert_input_to_capacity) {}

void AllGather::lay_out_rows(const Context& context,
                             DispatchState& state,
                             const Routed& routed,
                             const Tensor& counts_N) const {
  state.most_tokens = routed.most_tokens;
  if (padded_) {
    state.rows_each = ep_.size() * config_.expert_capacity(routed.most_tokens);
    state.arriving = grid().local() * state.rows_each;
    return;
  }
  Tensor rows_G(context.pool, DType::I64, {ep_.size()}, Tag::Activations);
  kernels::count_by_group(context.stream,
                          rows_G,
                          counts_N,
                          routed.experts_Tk,
                          {.first = 0, .width = grid().local()});
}

void AllGather::plan_on_host(DispatchState& state, const Tensor& shown_GN) const {
  state.arriving = 0;
  const std::int64_t* row = shown_GN.host<const std::int64_t>();
  for (int rank = 0; rank < ep_.size(); ++rank, row += shown_GN.row_stride()) {
    const std::int64_t slots = row[ep_.rank()];
    check_announced(rank, slots, state.most_tokens * grid().per_token);
    state.arriving += slots;
  }
}

void AllGather::permute_rows(const Context& context,
                             DispatchState& state,
                             const Routed& routed) const {
  const std::int64_t tokens = routed.x_TD.dim(0), most = state.most_tokens;
  state.sent = {.rows_RD = wire_rows(context, state, routed.x_TD),
                .p = with_room(context, routed.p_Tk, most),
                .choices_Rk = routed.experts_Tk};
  if (tokens == most) return;
  state.sent.choices_Rk = context.integers({most, grid().per_token});
  kernels::fill(context.stream, state.sent.choices_Rk, -1);
  const kernels::RowBlock all{.from = 0, .to = 0, .rows = tokens};
  kernels::copy_rows(context.stream, state.sent.choices_Rk, routed.experts_Tk, {&all, 1});
}

void AllGather::dispatch_forward(const Context& context, DispatchState& state) const {
  state.received = {.rows_RD = rows_at_experts(context, state, state.sent.rows_RD),
                    .p = gather(context, ep_, state.sent.p, Content::Probabilities),
                    .choices_Rk = gather(context, ep_, state.sent.choices_Rk, Content::Metadata)};
  state.sent = {};
}

ExpertRows AllGather::arrange_forward(const Context& context, DispatchState& state) const {
  const std::int64_t local = grid().local();
  return sort_received(context, state, {.first = ep_.rank() * local, .width = local});
}

void AllGather::restore_forward(const Context& context,
                                DispatchState& state,
                                const Tensor& output_XD) const {
  state.output_RD = context.wire_fp32({state.place_Rk.dim(0), output_XD.dim(1)});
  kernels::sum_rows(context.stream, state.output_RD, output_XD, state.place_Rk);
}

void AllGather::combine_forward(const Context& context, DispatchState& state) const {
  state.returned_RD = scatter_sums(context, ep_, state.output_RD, Content::Payload);
  state.output_RD.reset();
}

void AllGather::merge_forward(const Context& context,
                              DispatchState& state,
                              const Tensor& y_TD,
                              const Tensor& h_TD) const {
  kernels::copy(context.stream, y_TD, state.returned_RD.rows(0, y_TD.dim(0)));
  kernels::add(context.stream, y_TD, y_TD, h_TD);
  state.returned_RD.reset();
}

Tensor AllGather::wire_rows(const Context& context,
                            const DispatchState& state,
                            const Tensor& x_TD) const {
  return with_room(context, x_TD, state.most_tokens);
}

Tensor AllGather::rows_at_experts(const Context& context,
                                  const DispatchState&,
                                  const Tensor& rows_RD) const {
  return gather(context, ep_, rows_RD, Content::Payload);
}

Tensor AllGather::rows_by_expert(const Context& context,
                                 const DispatchState& state,
                                 const Tensor& rows_RD) const {
  return sort_rows(context, state, rows_RD);
}

void AllGather::restore_dgrad(const Context& context,
                              DispatchState& state,
                              const Tensor& dx_XD,
                              const Tensor& dp_X) const {
  state.dreceived.rows_RD = context.wire_fp32({state.place_Rk.dim(0), dx_XD.dim(1)});
  unsort_gradient(context, state, dx_XD, dp_X);
}

void AllGather::dispatch_dgrad(const Context& context, DispatchState& state) const {
  state.dsent.p = scatter_sums(context, ep_, state.dreceived.p, Content::Probabilities);
  state.dsent.rows_RD = scatter_sums(context, ep_, state.dreceived.rows_RD, Content::Payload);
  state.dreceived = {};
}

void AllGather::permute_rows_dgrad(const Context& context,
                                   DispatchState& state,
                                   const RoutedGradient& gradient) const {
  const std::int64_t tokens = gradient.dx_TD.dim(0);
  kernels::copy(context.stream, gradient.dx_TD, state.dsent.rows_RD.rows(0, tokens));
  kernels::copy(context.stream, gradient.dp_Tk, state.dsent.p.rows(0, tokens));
  state = {};
}

}  // namespace weft::model
