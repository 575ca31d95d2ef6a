#include "weft/model/attention.h"

#include <utility>

#include "weft/derive/layer_kind.h"
#include "weft/model/product.h"
#include "weft/model/rotary.h"

namespace weft::model {
namespace {

struct Heads {
  Tensor q_TQ, k_TK, v_TK;
};

// Query, key and value columns of a (T, C) tensor; values are undefined for (T, P).
Heads split(const config::ModelConfig& config, const Tensor& columns) {
  const std::int64_t q = config.local_query_width(), k = config.local_key_width();
  Heads heads{.q_TQ = columns.columns(0, q), .k_TK = columns.columns(q, k), .v_TK = {}};
  if (columns.dim(1) == q + 2 * k) heads.v_TK = columns.columns(q + k, k);
  return heads;
}

// Queries, keys and values as attention reads them.
Heads attended(const config::ModelConfig& config, const AttentionState& state) {
  Heads heads = split(config, state.qkv_TC);
  if (state.rotated_TP.defined()) {
    const Heads rotated = split(config, state.rotated_TP);
    heads.q_TQ = rotated.q_TQ;
    heads.k_TK = rotated.k_TK;
  }
  return heads;
}

kernels::AttentionShape shape_of(const Context& context) {
  const config::ModelConfig& config = context.config;
  return {.sequence = context.sequence,
          .heads = config.local_heads(),
          .groups = config.local_query_groups(),
          .head_width = config.head_dim(),
          .scale = score_scale(config)};
}

// True if query/key norm and rotation are fused.
bool norm_turns(const config::ModelConfig& config) {
  return config.apply_rope_fusion && config.qk_layernorm == config::QkNorm::Head;
}

// Sums of the query norm and the key norm over several ranks; undefined: no such norm.
struct NormSums {
  Tensor q_T, k_T;
};
NormSums split_sums(const Tensor& sums_2T) {
  if (!sums_2T.defined()) return {};
  const std::int64_t tokens = sums_2T.dim(0) / 2;
  return {.q_T = sums_2T.range(0, {tokens}), .k_T = sums_2T.range(tokens, {tokens})};
}

// Extent of a norm over `columns` of each rank. Keys that several ranks hold count once per rank,
// in sums and width alike.
kernels::SharedNorm norm_of_ranks(const config::ModelConfig& config, const Tensor& columns) {
  return {.width = columns.dim(1) * config.tensor_model_parallel_size,
          .epsilon = static_cast<float>(config.layernorm_epsilon)};
}

// Norms queries or keys, and rotates them if fused.
void norm_heads(const Context& context,
                const Tensor& to,
                const Tensor& rstd,
                const Tensor& from,
                const Weight& w,
                const Tensor& sums_T) {
  const config::ModelConfig& config = context.config;
  const auto epsilon = static_cast<float>(config.layernorm_epsilon);
  if (sums_T.defined()) {
    kernels::shared_norm_forward(context.stream,
                                 to,
                                 rstd,
                                 from,
                                 w.values,
                                 sums_T,
                                 norm_of_ranks(config, from));
  } else if (norm_turns(config)) {
    kernels::norm_rotary_forward(context.stream,
                                 to,
                                 rstd,
                                 from,
                                 w.values,
                                 context.rotary_SD,
                                 epsilon,
                                 query_rotary(config).pairs);
  } else {
    kernels::rms_norm_forward(context.stream, to, rstd, from, w.values, epsilon);
  }
}

void norm_queries_and_keys(const Context& context,
                           AttentionState& state,
                           const AttentionWeights& weights) {
  const config::ModelConfig& config = context.config;
  const std::int64_t tokens = state.qkv_TC.dim(0), q = config.local_query_width(),
                     k = config.local_key_width();
  state.rotated_TP = context.activation({tokens, q + k});
  state.q_rstd = context.activation_fp32({tokens, q / weights.q_norm.values.dim(0)});
  state.k_rstd = context.activation_fp32({tokens, k / weights.k_norm.values.dim(0)});
  const Heads from = split(config, state.qkv_TC), to = split(config, state.rotated_TP);
  const NormSums sums = split_sums(state.sums_2T);
  norm_heads(context, to.q_TQ, state.q_rstd, from.q_TQ, weights.q_norm, sums.q_T);
  norm_heads(context, to.k_TK, state.k_rstd, from.k_TK, weights.k_norm, sums.k_T);
  state.sums_2T.reset();
}

// Writes this rank's part of the norm's sums: of a b w; w undefined: 1.
void sum_heads(const Context& context,
               AttentionState& state,
               const Heads& a,
               const Heads& b,
               const AttentionWeights& w) {
  state.sums_2T = context.wire_fp32({2 * a.q_TQ.dim(0)});
  const NormSums sums = split_sums(state.sums_2T);
  kernels::row_dots(context.stream, sums.q_T, a.q_TQ, b.q_TQ, w.q_norm.values);
  kernels::row_dots(context.stream, sums.k_T, a.k_TK, b.k_TK, w.k_norm.values);
}

// Queries and keys are adjacent columns, so one rotation turns both.
void turn_queries_and_keys(const Context& context, AttentionState& state) {
  const config::ModelConfig& config = context.config;
  if (norm_turns(config)) return;
  const std::int64_t width = config.local_query_width() + config.local_key_width();
  const Tensor turned_TP =
      state.rotated_TP.defined() ? state.rotated_TP : state.qkv_TC.columns(0, width);
  kernels::rotary_forward(context.stream,
                          turned_TP,
                          turned_TP,
                          context.rotary_SD,
                          query_rotary(config));
}

void turn_gradients_back(const Context& context, AttentionState& state) {
  const config::ModelConfig& config = context.config;
  if (norm_turns(config)) return;
  const std::int64_t width = config.local_query_width() + config.local_key_width();
  const Tensor turned_TP =
      state.dnormed_TP.defined() ? state.dnormed_TP : state.dqkv_TC.columns(0, width);
  kernels::rotary_dgrad(context.stream,
                        turned_TP,
                        turned_TP,
                        context.rotary_SD,
                        query_rotary(config));
}

// Gradient of queries or keys before norm_heads.
void norm_heads_dgrad(const Context& context,
                      const Tensor& dx,
                      const Tensor& dy,
                      const Tensor& x,
                      const Weight& w,
                      const Tensor& rstd,
                      const Tensor& sums_T) {
  const config::ModelConfig& config = context.config;
  if (sums_T.defined()) {
    kernels::shared_norm_dgrad(context.stream,
                               dx,
                               dy,
                               x,
                               w.values,
                               rstd,
                               sums_T,
                               norm_of_ranks(config, x));
  } else if (norm_turns(config)) {
    kernels::norm_rotary_dgrad(context.stream,
                               dx,
                               dy,
                               x,
                               w.values,
                               rstd,
                               context.rotary_SD,
                               query_rotary(config).pairs);
  } else {
    kernels::rms_norm_dgrad(context.stream, dx, dy, x, w.values, rstd);
  }
}

void norm_heads_wgrad(const Context& context,
                      const Weight& w,
                      const Tensor& dy,
                      const Tensor& x,
                      const Tensor& rstd) {
  const config::ModelConfig& config = context.config;
  write_gradient(context, w, [&](const Tensor& to, kernels::Write how) {
    if (norm_turns(config)) {
      kernels::norm_rotary_wgrad(context.stream,
                                 to,
                                 dy,
                                 x,
                                 rstd,
                                 context.rotary_SD,
                                 query_rotary(config).pairs,
                                 how);
    } else {
      kernels::rms_norm_wgrad(context.stream, to, dy, x, rstd, how);
    }
  });
}

// From gradients of rotated queries, keys and values to the gradient of QKV's output.
void heads_dgrad(const Context& context, AttentionState& state, const AttentionWeights& weights) {
  const config::ModelConfig& config = context.config;
  if (!derive::norms_across_ranks(config)) turn_gradients_back(context, state);
  if (state.dnormed_TP.defined()) {
    const Heads from = split(config, state.dnormed_TP), to = split(config, state.dqkv_TC);
    const Heads plain = split(config, state.qkv_TC);
    const NormSums sums = split_sums(state.sums_2T);
    norm_heads_dgrad(context,
                     to.q_TQ,
                     from.q_TQ,
                     plain.q_TQ,
                     weights.q_norm,
                     state.q_rstd,
                     sums.q_T);
    norm_heads_dgrad(context,
                     to.k_TK,
                     from.k_TK,
                     plain.k_TK,
                     weights.k_norm,
                     state.k_rstd,
                     sums.k_T);
    state.sums_2T.reset();
  }
}

}  // namespace

void attention_qkv_forward(const Context& context,
                           AttentionState& state,
                           const AttentionWeights& weights) {
  const config::ModelConfig& config = context.config;
  first_product_forward(context, state.qkv_TC, state.ends, weights.qkv_CD);
  if (!context.closes()) return;
  if (derive::norms_across_ranks(config)) {
    const Heads heads = split(config, state.qkv_TC);
    return sum_heads(context, state, heads, heads, {});
  }
  if (weights.q_norm.defined()) norm_queries_and_keys(context, state, weights);
  turn_queries_and_keys(context, state);
}

void attention_turn_forward(const Context& context,
                            AttentionState& state,
                            const AttentionWeights& weights) {
  norm_queries_and_keys(context, state, weights);
  turn_queries_and_keys(context, state);
}

void attention_core_forward(const Context& context, AttentionState& state) {
  const config::ModelConfig& config = context.config;
  const std::int64_t tokens = state.qkv_TC.dim(0);
  const Heads heads = attended(config, state);
  state.o_TQ = context.activation({tokens, config.local_query_width()});
  state.lse_HT = context.activation_fp32({config.local_heads(), tokens});
  kernels::attention_forward(context.stream,
                             context.pool,
                             state.o_TQ,
                             state.lse_HT,
                             heads.q_TQ,
                             heads.k_TK,
                             heads.v_TK,
                             shape_of(context));
}

void attention_proj_forward(const Context& context,
                            AttentionState& state,
                            const AttentionWeights& weights) {
  last_product_forward(context, state.ends, state.o_TQ, weights.proj_DQ);
}

void attention_proj_dgrad(const Context& context,
                          AttentionState& state,
                          const AttentionWeights& weights) {
  last_product_dgrad(context, state.do_TQ, state.ends, weights.proj_DQ);
  if (!context.closes()) return;
  state.proj_o_TQ = state.o_TQ;
  state.proj_dy_TD = take_whole_gradient(context, state.ends);
}

Attended attended_gradients(const Context& context, AttentionState& state, std::int64_t tokens) {
  const config::ModelConfig& config = context.config;
  const std::int64_t q = config.local_query_width(), k = config.local_key_width();
  state.dqkv_TC = context.activation({tokens, q + 2 * k});
  const Heads plain = split(config, state.dqkv_TC);
  Attended gradient{.q_TQ = plain.q_TQ, .k_TK = plain.k_TK, .v_TV = plain.v_TK};
  if (config.qk_layernorm != config::QkNorm::None) {
    state.dnormed_TP = context.activation({tokens, q + k});
    const Heads normed = split(config, state.dnormed_TP);
    gradient.q_TQ = normed.q_TQ;
    gradient.k_TK = normed.k_TK;
  }
  return gradient;
}

void attention_core_dgrad(const Context& context, AttentionState& state) {
  const config::ModelConfig& config = context.config;
  const Attended gradient = attended_gradients(context, state, state.qkv_TC.dim(0));
  const Heads heads = attended(config, state);
  kernels::attention_dgrad(context.stream,
                           context.pool,
                           gradient.q_TQ,
                           gradient.k_TK,
                           gradient.v_TV,
                           state.do_TQ,
                           state.o_TQ,
                           state.lse_HT,
                           heads.q_TQ,
                           heads.k_TK,
                           heads.v_TK,
                           shape_of(context));
  // The norm's gradients read the norm's input again, so it is kept.
  (state.rotated_TP.defined() ? state.rotated_TP : state.qkv_TC).reset();
  for (Tensor* done : {&state.do_TQ, &state.o_TQ, &state.lse_HT}) done->reset();
}

void attention_turn_dgrad(const Context& context,
                          AttentionState& state,
                          const AttentionWeights& weights) {
  turn_gradients_back(context, state);
  const Heads gradients = split(context.config, state.dnormed_TP);
  sum_heads(context, state, gradients, split(context.config, state.qkv_TC), weights);
}

void attention_qkv_dgrad(const Context& context,
                         AttentionState& state,
                         const AttentionWeights& weights) {
  if (context.opens()) heads_dgrad(context, state, weights);
  first_product_dgrad(context, state.ends, state.dqkv_TC, weights.qkv_CD);
}

void attention_proj_wgrad(const Context& context,
                          AttentionState& state,
                          const AttentionWeights& weights) {
  product_wgrad(context, weights.proj_DQ, state.proj_dy_TD, state.proj_o_TQ);
  state.proj_dy_TD.reset();
  state.proj_o_TQ.reset();
}

void attention_qkv_wgrad(const Context& context,
                         AttentionState& state,
                         const AttentionWeights& weights) {
  product_wgrad(context, weights.qkv_CD, state.dqkv_TC, state.ends.x_TD);
  attention_norms_wgrad(context, state, weights);
  state.ends.drop_input();
  state.dqkv_TC.reset();
}

void attention_norms_wgrad(const Context& context,
                           AttentionState& state,
                           const AttentionWeights& weights) {
  if (!state.dnormed_TP.defined()) return;
  const Heads normed = split(context.config, state.dnormed_TP);
  const Heads plain = split(context.config, state.qkv_TC);
  norm_heads_wgrad(context, weights.q_norm, normed.q_TQ, plain.q_TQ, state.q_rstd);
  norm_heads_wgrad(context, weights.k_norm, normed.k_TK, plain.k_TK, state.k_rstd);
  for (Tensor* done : {&state.dnormed_TP, &state.qkv_TC, &state.q_rstd, &state.k_rstd}) {
    done->reset();
  }
}

kernels::AttentionShape attention_shape(const Context& context, const AttentionState&) {
  return shape_of(context);
}

Attended take_attended(const Context& context, AttentionState& state) {
  Heads heads = attended(context.config, state);
  // The norm's gradients read the norm's input again, so it is kept.
  (state.rotated_TP.defined() ? state.rotated_TP : state.qkv_TC).reset();
  return {.q_TQ = std::move(heads.q_TQ),
          .k_TK = std::move(heads.k_TK),
          .v_TV = std::move(heads.v_TK)};
}

void put_output(AttentionState& state, Tensor o_TQ) { state.o_TQ = std::move(o_TQ); }

Tensor take_output_gradient(AttentionState& state) {
  state.o_TQ.reset();
  return std::move(state.do_TQ);
}

void drop_attention_qkv(AttentionState& state) {
  for (Tensor* done : {&state.qkv_TC, &state.rotated_TP, &state.q_rstd, &state.k_rstd}) {
    done->reset();
  }
}

std::vector<Tensor*> made_by_core(AttentionState& state) { return {&state.o_TQ, &state.lse_HT}; }

}  // namespace weft::model
