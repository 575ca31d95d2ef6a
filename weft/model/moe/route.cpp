#include "weft/model/moe/route.h"

#include "weft/base/random.h"
#include "weft/model/product.h"

namespace weft::model {
namespace {

kernels::GroupLimit group_limit_of(const config::ModelConfig& config) {
  if (!config.moe_router_num_groups) return {};
  const std::int64_t groups = *config.moe_router_num_groups;
  const std::int64_t kept = config.moe_router_group_topk.value_or(groups);
  return {.groups = groups,
          .kept = kept,
          .counted = config.moe_router_group_score_topk.value_or(
              std::max<std::int64_t>(1, config.moe_router_topk / kept))};
}

// Own scores are always renormalised if there are several.
kernels::TopK top_k_of(const config::ModelConfig& config) {
  using kernels::TopK;
  const kernels::Score score = score_of(config);
  const bool sums_to_one = score == kernels::Score::Softmax ? config.moe_router_norm_topk_prob
                                                            : config.moe_router_topk > 1;
  return {.score = score,
          .softmax = config.moe_router_pre_softmax ? TopK::Softmax::BeforeSelection
                                                   : TopK::Softmax::AfterSelection,
          .renormalise = sums_to_one ? TopK::Renormalise::Yes : TopK::Renormalise::No,
          .groups = group_limit_of(config),
          .factor = static_cast<float>(config.moe_router_topk_scaling_factor.value_or(1))};
}

enum class Drawn { Logits, Jitter };

kernels::Noise noise_of(const Context& context, Drawn what) {
  const std::uint64_t key = base::combine(context.random.layer_key,
                                          base::hash(what == Drawn::Logits ? "logits" : "jitter"));
  return {.key = base::combine(key, static_cast<std::uint64_t>(context.random.step)),
          .tokens = context.random.tokens};
}

bool has_jitter(const config::ModelConfig& config) {
  return config.moe_input_jitter_eps.value_or(0) != 0;
}

// Noise has no state: jitter, and its gradient, are recomputed when needed again.
Tensor jittered(const Context& context, const Tensor& x_TD) {
  Tensor y_TD = context.activation(x_TD.shape());
  kernels::jitter(context.stream,
                  y_TD,
                  x_TD,
                  static_cast<float>(*context.config.moe_input_jitter_eps),
                  noise_of(context, Drawn::Jitter));
  return y_TD;
}

Tensor router_input(const Context& context, const RouteState& state) {
  return has_jitter(context.config) ? jittered(context, state.norm.y_TD) : state.norm.y_TD;
}

// For benchmarks: replaces the router's logits by random ones; the gradient passes straight
// through.
void force_logits(const Context& context, const Tensor& logits_TE) {
  const config::ModelConfig& config = context.config;
  if (!config.moe_router_force_load_balancing && !config.moe_router_force_biased) return;
  kernels::random_logits(
      context.stream,
      logits_TE,
      {.noise = noise_of(context, Drawn::Logits),
       .expert_key = base::combine(context.random.layer_key, base::hash("experts")),
       .deviation = static_cast<float>(config.moe_router_force_biased.value_or(0))});
}

// The k best experts of each token, or the given ones. model.moe_router_fusion computes
// probabilities with the choice, otherwise a separate kernel does, with equal bits.
void choose_experts(const Context& context, RouteState& state, const RouteWeights& weights) {
  const config::ModelConfig& config = context.config;
  const Shape slots{state.logits_TE.dim(0), config.moe_router_topk};
  state.p_Tk = context.activation_fp32(slots);
  state.experts_Tk = context.integers(slots);
  if (config.moe_expert_capacity_factor) {
    state.chosen_p_Tk = context.activation_fp32(slots);
    state.chosen_Tk = context.integers(slots);
  }
  const bool may_drop = state.chosen_Tk.defined();
  const Tensor& p_Tk = may_drop ? state.chosen_p_Tk : state.p_Tk;
  const Tensor& experts_Tk = may_drop ? state.chosen_Tk : state.experts_Tk;
  Stream& stream = context.stream;
  const kernels::TopK options = top_k_of(config);
  if (state.given_Tk.defined()) {
    kernels::copy(stream, experts_Tk, state.given_Tk);
  } else {
    kernels::top_k_forward(stream, p_Tk, experts_Tk, state.logits_TE, weights.bias_E, options);
    if (config.moe_router_fusion) return;
  }
  kernels::probabilities_of_choice(stream, p_Tk, experts_Tk, state.logits_TE, options);
}

const Tensor& choice(const RouteState& state) {
  return state.chosen_Tk.defined() ? state.chosen_Tk : state.experts_Tk;
}

// Choice by logit alone; other scores may round different logits to one number.
Tensor choice_by_logit(const RouteState& state,
                       const RouteWeights& weights,
                       const config::ModelConfig& config) {
  const bool by_logit = score_of(config) == kernels::Score::Softmax && !weights.bias_E.defined() &&
                        !config.moe_router_num_groups && !state.given_Tk.defined();
  return by_logit ? choice(state) : Tensor();
}

// Applies the experts' capacity to the choice.
void drop_over_capacity(const Context& context, RouteState& state, const Tensor& dropped_1) {
  const config::ModelConfig& config = context.config;
  if (!state.chosen_Tk.defined()) return;
  kernels::drop_over_capacity_forward(context.stream,
                                      state.p_Tk,
                                      state.experts_Tk,
                                      dropped_1,
                                      state.chosen_p_Tk,
                                      state.chosen_Tk,
                                      config.experts(),
                                      config.expert_capacity(state.logits_TE.dim(0)),
                                      config.moe_token_drop_policy == config::DropPolicy::Probs
                                          ? kernels::Keep::MostProbable
                                          : kernels::Keep::FirstTokens);
}

void make_logits(const Context& context, RouteState& state, const RouteWeights& weights) {
  state.logits_TE = product_forward(context, router_input(context, state), weights.router_ED);
  force_logits(context, state.logits_TE);
}

void choice_dgrad(const Context& context, RouteState& state) {
  const kernels::TopK options = top_k_of(context.config);
  Stream& stream = context.stream;
  state.dlogits_TE = context.activation_fp32(state.logits_TE.shape());
  if (!state.chosen_Tk.defined()) {
    return kernels::top_k_dgrad(stream,
                                state.dlogits_TE,
                                state.dp_Tk,
                                state.p_Tk,
                                state.experts_Tk,
                                state.logits_TE,
                                options);
  }
  Tensor dchosen_p_Tk = context.activation_fp32(state.dp_Tk.shape());
  kernels::drop_over_capacity_dgrad(stream, dchosen_p_Tk, state.dp_Tk, state.experts_Tk);
  kernels::top_k_dgrad(stream,
                       state.dlogits_TE,
                       dchosen_p_Tk,
                       state.chosen_p_Tk,
                       state.chosen_Tk,
                       state.logits_TE,
                       options);
}

}  // namespace

void choose_forward(const Context& context,
                    RouteState& state,
                    const RouteWeights& weights,
                    const RouterSums& sums) {
  make_logits(context, state, weights);
  choose_experts(context, state, weights);
  kernels::count_experts(context.stream, sums.rows_1E, choice(state), {});
  drop_over_capacity(context, state, sums.dropped_1);
  const Tensor best_Tk = choice_by_logit(state, weights, context.config);
  balance_forward(context, state.balance, state.logits_TE, best_Tk, sums);
}

void choose_again(const Context& context, RouteState& state, const RouteWeights& weights) {
  make_logits(context, state, weights);
  choose_experts(context, state, weights);
  if (!state.chosen_Tk.defined()) return;
  const Tensor counted_before_1(context.pool, DType::I64, {1}, Tag::Activations);
  kernels::zero(context.stream, counted_before_1);
  drop_over_capacity(context, state, counted_before_1);
}

void drop_choice(RouteState& state) {
  for (Tensor* done :
       {&state.logits_TE, &state.p_Tk, &state.experts_Tk, &state.chosen_p_Tk, &state.chosen_Tk}) {
    done->reset();
  }
}

void choose_dgrad(const Context& context,
                  RouteState& state,
                  const RouteWeights& weights,
                  const RouterSums& sums) {
  Stream& stream = context.stream;
  choice_dgrad(context, state);
  const Tensor best_Tk = choice_by_logit(state, weights, context.config);
  balance_dgrad(context, state.balance, state.dlogits_TE, state.logits_TE, best_Tk, sums);
  Tensor through_router_TD = product_dgrad(context, state.dlogits_TE, weights.router_ED);
  if (has_jitter(context.config)) through_router_TD = jittered(context, through_router_TD);
  kernels::add(stream, state.norm.dy_TD, state.norm.dy_TD, through_router_TD);
  drop_choice(state);
  state.dp_Tk.reset();
}

void choose_wgrad(const Context& context, RouteState& state, const RouteWeights& weights) {
  product_wgrad(context, weights.router_ED, state.dlogits_TE, router_input(context, state));
  state.dlogits_TE.reset();
}

}  // namespace weft::model
