#include "weft/model/moe/dispatcher.h"

#include "weft/base/check.h"
#include "weft/model/moe/allgather.h"
#include "weft/model/moe/alltoall.h"
#include "weft/model/moe/flex.h"

namespace weft::model {
namespace {

Routed fanned_out(const Routed& routed, const ShardChoice& shards) {
  return {.x_TD = routed.x_TD,
          .p_Tk = shards.p_TK,
          .experts_Tk = shards.experts_TK,
          .most_tokens = routed.most_tokens};
}

}  // namespace

void Dispatcher::lay_out(const Context& context,
                         DispatchState& state,
                         const Routed& routed,
                         const Tensor& counts_N) const {
  if (grid_.shards == 1) return lay_out_rows(context, state, routed, counts_N);
  const std::int64_t tokens = routed.experts_Tk.dim(0);
  ShardChoice& shards = state.shards;
  shards = {.p_TK = context.activation_fp32({tokens, grid_.per_token}),
            .experts_TK = context.integers({tokens, grid_.per_token}),
            .copy_Sn = context.integers({routed.experts_Tk.elements(), grid_.shards})};
  kernels::choose_shards(context.stream,
                         shards.p_TK,
                         shards.experts_TK,
                         shards.copy_Sn,
                         routed.p_Tk,
                         routed.experts_Tk,
                         {.experts = grid_.local(), .shards = grid_.shards});
  lay_out_rows(context, state, fanned_out(routed, shards), counts_N);
}

void Dispatcher::plan_on_device(const Context&,
                                DispatchState&,
                                const Tensor&,
                                const Tensor&) const {
  UNREACHABLE("a plan on the device where the host learns the counts");
}

void Dispatcher::permute_forward(const Context& context,
                                 DispatchState& state,
                                 const Routed& routed) const {
  if (grid_.shards == 1) return permute_rows(context, state, routed);
  permute_rows(context, state, fanned_out(routed, state.shards));
  state.shards.p_TK.reset();
  state.shards.experts_TK.reset();
}

void Dispatcher::permute_again(const Context& context,
                               DispatchState& state,
                               const Tensor& x_TD) const {
  state.again_RD = wire_rows(context, state, x_TD);
}

void Dispatcher::dispatch_again(const Context& context, DispatchState& state) const {
  state.again_RD = rows_at_experts(context, state, state.again_RD);
}

Tensor Dispatcher::arrange_again(const Context& context, DispatchState& state) const {
  Tensor x_XD = rows_by_expert(context, state, state.again_RD);
  state.again_RD.reset();
  return x_XD;
}

Tensor Dispatcher::rows_again(const Context& context,
                              const DispatchState& state,
                              const Tensor& x_TD) const {
  CHECK(!moves_rows(), "rows of {} ranks are made again on one", grid_.ranks);
  const Tensor rows_RD = rows_at_experts(context, state, wire_rows(context, state, x_TD));
  return rows_by_expert(context, state, rows_RD);
}

void Dispatcher::merge_dgrad(const Context& context,
                             DispatchState& state,
                             const Tensor& dy_TD) const {
  state.dreturned_RD = wire_rows(context, state, dy_TD);
}

void Dispatcher::combine_dgrad(const Context& context, DispatchState& state) const {
  state.doutput_RD = rows_at_experts(context, state, state.dreturned_RD);
  state.dreturned_RD.reset();
}

Tensor Dispatcher::arrange_dgrad(const Context& context, DispatchState& state) const {
  Tensor doutput_XD = rows_by_expert(context, state, state.doutput_RD);
  state.doutput_RD.reset();
  return doutput_XD;
}

void Dispatcher::permute_dgrad(const Context& context,
                               DispatchState& state,
                               const RoutedGradient& gradient) const {
  if (grid_.shards == 1) return permute_rows_dgrad(context, state, gradient);
  const Tensor copy_Sn = state.shards.copy_Sn;
  const std::int64_t tokens = gradient.dp_Tk.dim(0), slots = gradient.dp_Tk.elements();
  const Tensor dp_TK = context.activation_fp32({tokens, grid_.per_token});
  permute_rows_dgrad(context, state, {.dx_TD = gradient.dx_TD, .dp_Tk = dp_TK});
  kernels::sum_rows(context.stream,
                    gradient.dp_Tk.view({slots, 1}),
                    dp_TK.view({dp_TK.elements(), 1}),
                    copy_Sn);
}

void merge_rows(const Context& context,
                const Tensor& y_TD,
                const Tensor& h_TD,
                const Tensor& returned_RD,
                const Tensor& rows_Tm) {
  if (context.config.moe_permute_fusion) {
    kernels::sum_rows(context.stream, y_TD, returned_RD, rows_Tm, h_TD);
    return;
  }
  kernels::sum_rows(context.stream, y_TD, returned_RD, rows_Tm);
  kernels::add(context.stream, y_TD, y_TD, h_TD);
}

std::unique_ptr<Dispatcher> make_dispatcher(const config::ModelConfig& config,
                                            const EpGroups& groups,
                                            config::RowBudget budget) {
  const std::int64_t ranks = config.expert_grid().ranks;
  CHECK(groups.ep.size() == ranks, "{} ranks for experts on {}", groups.ep.size(), ranks);
  switch (config.moe_token_dispatcher_type) {
    case config::Dispatcher::AllGather:
      return std::make_unique<AllGather>(config, groups.ep);
    case config::Dispatcher::Flex:
      return std::make_unique<Flex>(config, groups, budget);
    case config::Dispatcher::AllToAll:
      return std::make_unique<AllToAll>(config, groups.ep);
    case config::Dispatcher::AllToAllSeq:
      break;
  }
  UNREACHABLE("dispatcher {} is not built", config::word(config.moe_token_dispatcher_type));
}

}  // namespace weft::model
