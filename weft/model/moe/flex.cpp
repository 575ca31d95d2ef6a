#include "weft/model/moe/flex.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weft/kernels/hop_counts.h"
#include "weft/model/moe/sorting.h"

namespace weft::model {
namespace {

using comm::Content;

enum class Way { Out, Back };

std::int64_t total(const std::vector<std::int64_t>& rows) {
  std::int64_t sum = 0;
  for (const std::int64_t n : rows) sum += n;
  return sum;
}

// Rows that leave on a hop, or the room for them if the host never learns the count.
std::int64_t rows_out(const Hop& hop) {
  return hop.send_rows.empty() ? hop.token_R.dim(0) : total(hop.send_rows);
}

// Moves rows over one hop, with the host's counts or, without them, the device's.
Tensor travel(const Context& context,
              comm::Communicator& group,
              const Hop& hop,
              const Tensor& rows,
              Way way,
              Content content) {
  if (group.size() == 1) return rows.rows(0, rows_out(hop));
  const bool out = way == Way::Out;
  const std::int64_t room = out ? hop.room : rows_out(hop);
  Tensor received(context.pool, rows.dtype(), {room, rows.dim(1)}, Tag::Communication);
  if (hop.send_rows.empty()) {
    // Room behind received rows must read as "none".
    if (content == Content::Metadata) kernels::fill(context.stream, received, -1);
    group.all_to_all_counted(context.stream,
                             received,
                             out ? hop.receive : hop.send,
                             rows,
                             out ? hop.send : hop.receive,
                             content);
  } else {
    group.all_to_all(context.stream,
                     received,
                     rows,
                     out ? hop.receive_rows : hop.send_rows,
                     out ? hop.send_rows : hop.receive_rows,
                     content);
  }
  return received;
}

Cargo travel(const Context& context, comm::Communicator& group, const Hop& hop, const Cargo& sent) {
  return {.rows_RD = travel(context, group, hop, sent.rows_RD, Way::Out, Content::Payload),
          .p = travel(context, group, hop, sent.p, Way::Out, Content::Probabilities),
          .choices_Rk = travel(context, group, hop, sent.choices_Rk, Way::Out, Content::Metadata)};
}

// Copies each token for each group of ranks with its experts.
Cargo copies(const Context& context, Hop& hop, const Tensor& x_TD, const Tensor& p_Tk) {
  const std::int64_t rows = hop.token_R.dim(0);
  Cargo cargo{.rows_RD = context.wire({rows, x_TD.dim(1)}),
              .p = context.wire_fp32({rows, p_Tk.dim(1)}),
              .choices_Rk = std::move(hop.choice_Rk)};
  kernels::gather_rows(context.stream, cargo.rows_RD, x_TD, hop.token_R);
  kernels::gather_choices(context.stream, cargo.p, p_Tk, hop.token_R, cargo.choices_Rk);
  return cargo;
}

// Sum of each token's copies.
Tensor sum_copies(const Context& context, const Hop& hop, const Tensor& rows) {
  Tensor sum(context.pool, rows.dtype(), {hop.row_Tm.dim(0), rows.dim(1)}, Tag::Communication);
  kernels::sum_rows(context.stream, sum, rows, hop.row_Tm);
  return sum;
}

Tensor copy_rows(const Context& context, const Hop& hop, const Tensor& rows_TD) {
  const std::int64_t rows = rows_out(hop);
  Tensor copied = context.wire({rows, rows_TD.dim(1)});
  kernels::gather_rows(context.stream, copied, rows_TD, hop.token_R.rows(0, rows));
  return copied;
}

void make_room(const Context& context,
               Hop& hop,
               std::int64_t tokens,
               std::int64_t rows,
               std::int64_t groups,
               std::int64_t k) {
  hop.row_Tm = context.integers({tokens, std::min(k, groups)});
  hop.token_R = context.integers({rows});
  hop.choice_Rk = Tensor(context.pool, DType::I32, {rows, k}, Tag::Communication);
}

}  // namespace

Flex::Flex(const config::ModelConfig& config, const EpGroups& groups, config::RowBudget budget)
    : Dispatcher(config.expert_grid()),
      config_(config),
      ep_(groups.ep),
      across_(groups.across != nullptr ? *groups.across : groups.ep),
      within_(groups.within),
      padded_(config.moe_pad_expert_input_to_capacity),
      bounded_(padded_ || (config.moe_expert_rank_capacity_factor && groups.ep.size() > 1 &&
                           budget != config::RowBudget::Lifted)) {}

kernels::Hops Flex::hops(std::int64_t most_tokens) const {
  kernels::Hops hops{.ranks = ep_.size(),
                     .per_machine = ep_.size() / across_.size(),
                     .rank = ep_.rank(),
                     .most_tokens = most_tokens,
                     .most_choices = grid().per_token,
                     .most_local = std::min(config_.moe_router_topk, grid().local()),
                     .budget = 0};
  if (padded_) {
    hops.budget = ep_.size() * grid().local() * config_.expert_capacity(most_tokens);
  } else if (bounded_) {
    hops.budget = config_.row_budget(most_tokens);
  }
  return hops;
}

void Flex::lay_out_rows(const Context& context,
                        DispatchState& state,
                        const Routed& routed,
                        const Tensor& counts_N) const {
  const std::int64_t tokens = routed.experts_Tk.dim(0), machines = across_.size();
  const std::int64_t ranks = ep_.size();
  state.most_tokens = routed.most_tokens;
  make_room(context,
            state.across,
            tokens,
            tokens * std::min(grid().per_token, machines),
            machines,
            grid().per_token);
  kernels::sort_by_group(context.stream,
                         state.across.row_Tm,
                         state.across.token_R,
                         state.across.choice_Rk,
                         counts_N.rows(0, machines),
                         routed.experts_Tk,
                         {.first = 0, .width = grid().experts / machines});
  // If every rank is a machine, its rows are counted already.
  const std::int64_t last = counts_N.dim(0) - ranks;
  const Tensor rows_G = last > machines
                            ? counts_N.rows(machines, ranks)
                            : Tensor(context.pool, DType::I64, {ranks}, Tag::Activations);
  kernels::count_by_group(context.stream,
                          rows_G,
                          counts_N.rows(last, ranks),
                          routed.experts_Tk,
                          {.first = 0, .width = grid().local()});
}

void Flex::plan_on_device(const Context& context,
                          DispatchState& state,
                          const Tensor& counts_GN,
                          const Tensor& overflow_1) const {
  const kernels::Hops shape = hops(state.most_tokens);
  const std::int64_t machines = shape.machines(), n = shape.per_machine;
  state.splits = Tensor(context.pool, DType::I64, {shape.splits()}, Tag::Communication);
  kernels::plan_hops(context.stream, state.splits, overflow_1, counts_GN, shape);
  state.across.send = state.splits.rows(0, machines);
  state.across.receive = state.splits.rows(machines, machines);
  state.within.send = state.splits.rows(2 * machines, n);
  state.within.receive = state.splits.rows(2 * machines + n, n);
  if (padded_) state.rows_each = shape.budget / grid().local();
  const std::int64_t every = shape.ranks * state.most_tokens;
  state.arriving = shape.budget;
  state.across.room = two_hops() ? machines * state.most_tokens : std::min(shape.budget, every);
  state.within.room = std::min(shape.budget, every);
}

void Flex::plan_on_host(DispatchState& state, const Tensor& shown_GN) const {
  const kernels::Hops shape = hops(state.most_tokens);
  const kernels::HopCounts counts{.counts = shown_GN.host<const std::int64_t>(),
                                  .stride = shown_GN.row_stride(),
                                  .hops = shape};
  if (const std::optional<tensor::Fault> fault = counts.fault()) tensor::throw_fault(*fault);
  std::vector<std::int64_t> splits(static_cast<std::size_t>(shape.splits()));
  counts.split(splits.data());
  auto split = splits.begin();
  const auto take = [&](std::int64_t count) {
    const auto begin = std::exchange(split, split + count);
    return std::vector<std::int64_t>(begin, split);
  };
  state.across.send_rows = take(shape.machines());
  state.across.receive_rows = take(shape.machines());
  state.within.send_rows = take(shape.per_machine);
  state.within.receive_rows = take(shape.per_machine);
  for (Hop* hop : {&state.across, &state.within}) hop->room = total(hop->receive_rows);
  state.arriving = *split;
}

void Flex::permute_rows(const Context& context, DispatchState& state, const Routed& routed) const {
  state.sent = copies(context, state.across, routed.x_TD, routed.p_Tk);
}

void Flex::dispatch_forward(const Context& context, DispatchState& state) const {
  state.received = travel(context, across_, state.across, state.sent);
  state.sent = {};
  if (two_hops()) fan_out(context, state);
}

void Flex::fan_out(const Context& context, DispatchState& state) const {
  const std::int64_t n = within_->size(), machine = ep_.rank() / n;
  const std::int64_t rows = state.received.choices_Rk.dim(0);
  const std::int64_t on = state.within.send_rows.empty() ? rows * std::min(grid().per_token, n)
                                                         : total(state.within.send_rows);
  make_room(context, state.within, rows, on, n, grid().per_token);
  Tensor counts_n(context.pool, DType::I64, {n}, Tag::Communication);
  kernels::sort_by_group(context.stream,
                         state.within.row_Tm,
                         state.within.token_R,
                         state.within.choice_Rk,
                         counts_n,
                         state.received.choices_Rk,
                         {.first = machine * n * grid().local(), .width = grid().local()});
  const Cargo sent = copies(context, state.within, state.received.rows_RD, state.received.p);
  state.received = travel(context, *within_, state.within, sent);
}

ExpertRows Flex::arrange_forward(const Context& context, DispatchState& state) const {
  return sort_received(context,
                       state,
                       {.first = ep_.rank() * grid().local(), .width = grid().local()});
}

void Flex::restore_forward(const Context& context,
                           DispatchState& state,
                           const Tensor& output_XD) const {
  state.output_RD = context.wire({state.place_Rk.dim(0), output_XD.dim(1)});
  kernels::sum_rows(context.stream, state.output_RD, output_XD, state.place_Rk);
}

// Returns over the hops; a middle rank adds up its machine's results.
Tensor Flex::back(const Context& context,
                  const DispatchState& state,
                  Tensor rows,
                  comm::Content content) const {
  if (two_hops()) {
    const Tensor theirs = travel(context, *within_, state.within, rows, Way::Back, content);
    rows = sum_copies(context, state.within, theirs);
  }
  return travel(context, across_, state.across, rows, Way::Back, content);
}

void Flex::combine_forward(const Context& context, DispatchState& state) const {
  state.returned_RD = back(context, state, std::move(state.output_RD), Content::Payload);
  state.output_RD.reset();
}

void Flex::merge_forward(const Context& context,
                         DispatchState& state,
                         const Tensor& y_TD,
                         const Tensor& h_TD) const {
  merge_rows(context, y_TD, h_TD, state.returned_RD, state.across.row_Tm);
  state.returned_RD.reset();
}

Tensor Flex::wire_rows(const Context& context,
                       const DispatchState& state,
                       const Tensor& x_TD) const {
  return copy_rows(context, state.across, x_TD);
}

Tensor Flex::rows_at_experts(const Context& context,
                             const DispatchState& state,
                             const Tensor& rows_RD) const {
  Tensor rows = travel(context, across_, state.across, rows_RD, Way::Out, Content::Payload);
  if (!two_hops()) return rows;
  rows = copy_rows(context, state.within, rows);
  return travel(context, *within_, state.within, rows, Way::Out, Content::Payload);
}

Tensor Flex::rows_by_expert(const Context& context,
                            const DispatchState& state,
                            const Tensor& rows_RD) const {
  return sort_rows(context, state, rows_RD);
}

void Flex::restore_dgrad(const Context& context,
                         DispatchState& state,
                         const Tensor& dx_XD,
                         const Tensor& dp_X) const {
  state.dreceived.rows_RD = context.wire({state.place_Rk.dim(0), dx_XD.dim(1)});
  unsort_gradient(context, state, dx_XD, dp_X);
}

void Flex::dispatch_dgrad(const Context& context, DispatchState& state) const {
  state.dsent.p = back(context, state, std::move(state.dreceived.p), Content::Probabilities);
  state.dsent.rows_RD = back(context, state, std::move(state.dreceived.rows_RD), Content::Payload);
  state.dreceived = {};
}

void Flex::permute_rows_dgrad(const Context& context,
                              DispatchState& state,
                              const RoutedGradient& gradient) const {
  kernels::sum_rows(context.stream, gradient.dx_TD, state.dsent.rows_RD, state.across.row_Tm);
  kernels::sum_rows(context.stream, gradient.dp_Tk, state.dsent.p, state.across.row_Tm);
  state = {};
}

}  // namespace weft::model
