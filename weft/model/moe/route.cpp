#include "weft/model/moe/route.h"

namespace weft::model {
namespace {

kernels::TopK top_k_of(const config::ModelConfig& config) {
  using kernels::TopK;
  return {.softmax = config.moe_router_pre_softmax ? TopK::Softmax::BeforeSelection
                                                   : TopK::Softmax::AfterSelection,
          .renormalise =
              config.moe_router_norm_topk_prob ? TopK::Renormalise::Yes : TopK::Renormalise::No};
}

bool has_balance_loss(const config::ModelConfig& config) {
  return config.aux_loss_coeff(config::LoadBalancing::AuxLoss) != 0;
}

void add_losses(const Context& context, const RouteState& state, const RouterLosses& losses) {
  const config::ModelConfig& config = context.config;
  Tensor loss_1 = context.activation_fp32({1});
  if (has_balance_loss(config)) {
    kernels::balance_loss_forward(context.stream,
                                  loss_1,
                                  state.logits_TE,
                                  state.counts_E,
                                  config.moe_router_topk);
    kernels::accumulate(context.stream, losses.balance_1, loss_1);
  }
  if (config.moe_z_loss_coeff != 0) {
    kernels::z_loss_forward(context.stream, loss_1, state.logits_TE);
    kernels::accumulate(context.stream, losses.z_1, loss_1);
  }
}

void add_loss_gradients(const Context& context, RouteState& state) {
  const config::ModelConfig& config = context.config;
  Tensor more_TE = context.activation_fp32(state.logits_TE.shape());
  if (has_balance_loss(config)) {
    kernels::balance_loss_dgrad(
        context.stream,
        more_TE,
        state.logits_TE,
        state.counts_E,
        config.moe_router_topk,
        static_cast<float>(config.aux_loss_coeff(config::LoadBalancing::AuxLoss)) *
            context.loss_scale);
    kernels::add(context.stream, state.dlogits_TE, state.dlogits_TE, more_TE);
  }
  if (config.moe_z_loss_coeff != 0) {
    kernels::z_loss_dgrad(context.stream,
                          more_TE,
                          state.logits_TE,
                          static_cast<float>(config.moe_z_loss_coeff) * context.loss_scale);
    kernels::add(context.stream, state.dlogits_TE, state.dlogits_TE, more_TE);
  }
}

}  // namespace

void route_forward(const Context& context,
                   RouteState& state,
                   const RouteWeights& weights,
                   const Tensor& h_TD,
                   const RouterLosses& losses) {
  const config::ModelConfig& config = context.config;
  const std::int64_t tokens = h_TD.dim(0), experts = config.experts();
  const std::int64_t k = config.moe_router_topk;
  Stream& stream = context.stream;
  norm_forward(context, state.norm, h_TD, weights.norm_D);
  state.logits_TE = context.activation_fp32({tokens, experts});
  kernels::linear_forward(stream, state.logits_TE, state.norm.y_TD, weights.router_ED);
  state.p_Tk = context.activation_fp32({tokens, k});
  state.experts_Tk = context.integers({tokens, k});
  kernels::top_k_forward(stream, state.p_Tk, state.experts_Tk, state.logits_TE, top_k_of(config));
  state.counts_E = Tensor(context.pool, DType::I64, {experts}, Tag::Activations);
  Tensor tokens_E(context.pool, DType::I64, {experts}, Tag::Activations);
  kernels::count_by_group(stream, tokens_E, state.counts_E, state.experts_Tk, {});
  add_losses(context, state, losses);
}

Tensor route_dgrad(const Context& context,
                   RouteState& state,
                   const RouteWeights& weights,
                   const Tensor& h_TD,
                   const Tensor& dy_TD) {
  Stream& stream = context.stream;
  state.dlogits_TE = context.activation_fp32(state.logits_TE.shape());
  kernels::top_k_dgrad(stream,
                       state.dlogits_TE,
                       state.dp_Tk,
                       state.p_Tk,
                       state.experts_Tk,
                       state.logits_TE,
                       top_k_of(context.config));
  add_loss_gradients(context, state);
  Tensor through_router_TD = context.activation(h_TD.shape());
  kernels::linear_dgrad(stream, through_router_TD, state.dlogits_TE, weights.router_ED);
  kernels::add(stream, state.norm.dy_TD, state.norm.dy_TD, through_router_TD);
  for (Tensor* done :
       {&state.logits_TE, &state.p_Tk, &state.experts_Tk, &state.dp_Tk, &state.counts_E}) {
    done->reset();
  }
  return norm_dgrad(context, state.norm, h_TD, weights.norm_D, dy_TD);
}

void route_wgrad(const Context& context,
                 RouteState& state,
                 const RouteWeights& gradients,
                 const Tensor& h_TD) {
  kernels::linear_wgrad(context.stream, gradients.router_ED, state.dlogits_TE, state.norm.y_TD);
  norm_wgrad(context, state.norm, h_TD, gradients.norm_D);
  state = {};
}

}  // namespace weft::model
