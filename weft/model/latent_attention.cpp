#include "weft/model/latent_attention.h"

#include <utility>

#include "weft/model/product.h"
#include "weft/model/rotary.h"

namespace weft::model {
namespace {

struct DownColumns {
  Tensor query;        // compressed or whole
  Tensor latent_TR;    // compressed keys and values
  Tensor position_TP;  // position part of the keys, shared by all heads
};

DownColumns split_down(const config::ModelConfig& config, const Tensor& down_TC) {
  const std::int64_t r = config.kv_lora_rank, p = config.qk_pos_emb_head_dim;
  const std::int64_t query = down_TC.dim(1) - r - p;
  return {.query = down_TC.columns(0, query),
          .latent_TR = down_TC.columns(query, r),
          .position_TP = down_TC.columns(query + r, p)};
}

kernels::AttentionShape latent_shape(const Context& context) {
  const config::ModelConfig& config = context.config;
  return {.sequence = context.sequence,
          .heads = config.local_heads(),
          .groups = config.local_heads(),
          .head_width = config.latent_head_dim(),
          .scale = score_scale(config),
          .value_width = config.v_head_dim};
}

kernels::LatentHeads heads_of(const config::ModelConfig& config) {
  return {.heads = config.local_heads(),
          .content = config.qk_head_dim,
          .position = config.qk_pos_emb_head_dim,
          .value = config.v_head_dim};
}

// Rotation of the keys' position part: all its channels turn.
kernels::Rotary position_rotary(const config::ModelConfig& config) {
  return {.pairs = query_rotary(config).pairs};
}

void compressed_norm_forward(const Context& context,
                             NormState& state,
                             const Tensor& x,
                             const Weight& w) {
  state.y_TD = context.activation(x.shape());
  state.rstd_T1 = context.activation_fp32({x.dim(0), 1});
  const auto epsilon = static_cast<float>(context.config.latent_epsilon());
  kernels::rms_norm_forward(context.stream, state.y_TD, state.rstd_T1, x, w.values, epsilon);
}

// From the gradient of an expansion's output to that of its compressed input.
void expansion_dgrad(const Context& context,
                     NormState& state,
                     const Tensor& dx,
                     const Tensor& dy,
                     const Product& up,
                     const Tensor& x,
                     const Weight& w) {
  state.dy_TD = product_dgrad(context, dy, up);
  kernels::rms_norm_dgrad(context.stream, dx, state.dy_TD, x, w.values, state.rstd_T1);
}

void expansion_wgrad(const Context& context,
                     const NormState& state,
                     const Product& up,
                     const Weight& w,
                     const Tensor& dy,
                     const Tensor& x) {
  product_wgrad(context, up, dy, state.y_TD);
  norm_wgrad(context, state, x, w);
}

void turn_queries(const Context& context, const Tensor& q_TQ) {
  const kernels::Rotary rotary = query_rotary(context.config);
  kernels::rotary_forward(context.stream, q_TQ, q_TQ, context.rotary_SD, rotary);
}

void turn_queries_back(const Context& context, const Tensor& dq_TQ) {
  const kernels::Rotary rotary = query_rotary(context.config);
  kernels::rotary_dgrad(context.stream, dq_TQ, dq_TQ, context.rotary_SD, rotary);
}

void expand_queries(const Context& context,
                    LatentAttentionState& state,
                    const LatentAttentionWeights& weights,
                    const Tensor& query) {
  compressed_norm_forward(context, state.q_norm, query, weights.q_norm_L);
  state.q_TQ = product_forward(context, state.q_norm.y_TD, weights.q_up_QL);
  turn_queries(context, state.q_TQ);
}

void expand_keys_and_values(const Context& context,
                            LatentAttentionState& state,
                            const LatentAttentionWeights& weights,
                            const DownColumns& down) {
  const config::ModelConfig& config = context.config;
  const std::int64_t tokens = down.latent_TR.dim(0), heads = config.local_heads();
  Stream& stream = context.stream;
  compressed_norm_forward(context, state.kv_norm, down.latent_TR, weights.kv_norm_R);
  const Tensor kv_TU = product_forward(context, state.kv_norm.y_TD, weights.kv_up_UR);
  state.k_TK = context.activation({tokens, heads * config.latent_head_dim()});
  state.v_TV = context.activation({tokens, heads * config.v_head_dim});
  kernels::latent_keys_forward(stream,
                               state.k_TK,
                               state.v_TV,
                               kv_TU,
                               down.position_TP,
                               heads_of(config));
}

// From gradients of attention's keys and values to those of their inputs: state.dkv_TU and the
// position part of `ddown`.
void keys_and_values_dgrad(const Context& context,
                           LatentAttentionState& state,
                           const DownColumns& ddown) {
  const kernels::LatentHeads heads = heads_of(context.config);
  state.dkv_TU =
      context.activation({state.dk_TK.dim(0), heads.heads * (heads.content + heads.value)});
  kernels::latent_keys_dgrad(context.stream,
                             state.dkv_TU,
                             ddown.position_TP,
                             state.dk_TK,
                             state.dv_TV,
                             heads);
  state.dk_TK.reset();
  state.dv_TV.reset();
}

}  // namespace

// In-place rotation happens here, so that an expansion can be recomputed.
void attention_qkv_forward(const Context& context,
                           LatentAttentionState& state,
                           const LatentAttentionWeights& weights) {
  first_product_forward(context, state.down_TC, state.ends, weights.down_CD);
  if (!context.closes()) return;
  const DownColumns down = split_down(context.config, state.down_TC);
  kernels::rotary_forward(context.stream,
                          down.position_TP,
                          down.position_TP,
                          context.rotary_SD,
                          position_rotary(context.config));
  if (weights.q_up_QL.defined()) return;
  state.q_TQ = down.query;
  turn_queries(context, state.q_TQ);
}

void attention_expand_forward(const Context& context,
                              LatentAttentionState& state,
                              const LatentAttentionWeights& weights) {
  const DownColumns down = split_down(context.config, state.down_TC);
  if (weights.q_up_QL.defined()) {
    expand_queries(context, state, weights, down.query);
  } else {
    state.q_TQ = down.query;  // as qkv left them, even if given away since
  }
  expand_keys_and_values(context, state, weights, down);
}

// From gradients of attention's queries, keys and values to those of the compressed columns.
void attention_expand_dgrad(const Context& context,
                            LatentAttentionState& state,
                            const LatentAttentionWeights& weights) {
  const DownColumns down = split_down(context.config, state.down_TC);
  const DownColumns ddown = split_down(context.config, state.ddown_TC);
  keys_and_values_dgrad(context, state, ddown);
  if (weights.q_up_QL.defined()) {
    turn_queries_back(context, state.dq_TQ);
    expansion_dgrad(context,
                    state.q_norm,
                    ddown.query,
                    state.dq_TQ,
                    weights.q_up_QL,
                    down.query,
                    weights.q_norm_L);
  }
  expansion_dgrad(context,
                  state.kv_norm,
                  ddown.latent_TR,
                  state.dkv_TU,
                  weights.kv_up_UR,
                  down.latent_TR,
                  weights.kv_norm_R);
}

void attention_core_forward(const Context& context, LatentAttentionState& state) {
  const std::int64_t tokens = state.v_TV.dim(0);
  state.o_TV = context.activation(state.v_TV.shape());
  state.lse_HT = context.activation_fp32({context.config.local_heads(), tokens});
  kernels::attention_forward(context.stream,
                             context.pool,
                             state.o_TV,
                             state.lse_HT,
                             state.q_TQ,
                             state.k_TK,
                             state.v_TV,
                             latent_shape(context));
}

void attention_proj_forward(const Context& context,
                            LatentAttentionState& state,
                            const LatentAttentionWeights& weights) {
  last_product_forward(context, state.ends, state.o_TV, weights.proj_DV);
}

void attention_proj_dgrad(const Context& context,
                          LatentAttentionState& state,
                          const LatentAttentionWeights& weights) {
  last_product_dgrad(context, state.do_TV, state.ends, weights.proj_DV);
  if (!context.closes()) return;
  state.proj_o_TV = state.o_TV;
  state.proj_dy_TD = take_whole_gradient(context, state.ends);
}

Attended attended_gradients(const Context& context,
                            LatentAttentionState& state,
                            std::int64_t tokens) {
  const kernels::AttentionShape shape = latent_shape(context);
  const config::ModelConfig& config = context.config;
  const std::int64_t query = config.q_lora_rank.value_or(shape.heads * shape.head_width);
  state.ddown_TC =
      context.activation({tokens, query + config.kv_lora_rank + config.qk_pos_emb_head_dim});
  state.dq_TQ = config.q_lora_rank ? context.activation({tokens, shape.heads * shape.head_width})
                                   : split_down(context.config, state.ddown_TC).query;
  state.dk_TK = context.activation({tokens, shape.heads * shape.head_width});
  state.dv_TV = context.activation({tokens, shape.heads * *shape.value_width});
  return {.q_TQ = state.dq_TQ, .k_TK = state.dk_TK, .v_TV = state.dv_TV};
}

void attention_core_dgrad(const Context& context, LatentAttentionState& state) {
  attended_gradients(context, state, state.v_TV.dim(0));
  kernels::attention_dgrad(context.stream,
                           context.pool,
                           state.dq_TQ,
                           state.dk_TK,
                           state.dv_TV,
                           state.do_TV,
                           state.o_TV,
                           state.lse_HT,
                           state.q_TQ,
                           state.k_TK,
                           state.v_TV,
                           latent_shape(context));
  for (Tensor* done :
       {&state.q_TQ, &state.k_TK, &state.v_TV, &state.o_TV, &state.lse_HT, &state.do_TV}) {
    done->reset();
  }
}

void attention_qkv_dgrad(const Context& context,
                         LatentAttentionState& state,
                         const LatentAttentionWeights& weights) {
  if (context.opens()) {
    const DownColumns ddown = split_down(context.config, state.ddown_TC);
    kernels::rotary_dgrad(context.stream,
                          ddown.position_TP,
                          ddown.position_TP,
                          context.rotary_SD,
                          position_rotary(context.config));
    if (!weights.q_up_QL.defined()) turn_queries_back(context, ddown.query);
  }
  first_product_dgrad(context, state.ends, state.ddown_TC, weights.down_CD);
}

void attention_proj_wgrad(const Context& context,
                          LatentAttentionState& state,
                          const LatentAttentionWeights& weights) {
  product_wgrad(context, weights.proj_DV, state.proj_dy_TD, state.proj_o_TV);
  state.proj_dy_TD.reset();
  state.proj_o_TV.reset();
}

void attention_expand_wgrad(const Context& context,
                            LatentAttentionState& state,
                            const LatentAttentionWeights& weights) {
  const DownColumns down = split_down(context.config, state.down_TC);
  if (weights.q_up_QL.defined()) {
    expansion_wgrad(context,
                    state.q_norm,
                    weights.q_up_QL,
                    weights.q_norm_L,
                    state.dq_TQ,
                    down.query);
  }
  expansion_wgrad(context,
                  state.kv_norm,
                  weights.kv_up_UR,
                  weights.kv_norm_R,
                  state.dkv_TU,
                  down.latent_TR);
  for (NormState* done : {&state.q_norm, &state.kv_norm}) *done = {};
  for (Tensor* done : {&state.down_TC, &state.dq_TQ, &state.dkv_TU}) done->reset();
}

void attention_qkv_wgrad(const Context& context,
                         LatentAttentionState& state,
                         const LatentAttentionWeights& weights) {
  product_wgrad(context, weights.down_CD, state.ddown_TC, state.ends.x_TD);
  state.ddown_TC.reset();
  state.ends.drop_input();
}

kernels::AttentionShape attention_shape(const Context& context, const LatentAttentionState&) {
  return latent_shape(context);
}

Attended take_attended(const Context&, LatentAttentionState& state) {
  return {.q_TQ = std::move(state.q_TQ),
          .k_TK = std::move(state.k_TK),
          .v_TV = std::move(state.v_TV)};
}

void put_output(LatentAttentionState& state, Tensor o_TV) { state.o_TV = std::move(o_TV); }

Tensor take_output_gradient(LatentAttentionState& state) {
  state.o_TV.reset();
  return std::move(state.do_TV);
}

void drop_attention_qkv(LatentAttentionState& state) {
  if (state.q_TQ.defined() && state.q_TQ.shares_block(state.down_TC)) state.q_TQ.reset();
  state.down_TC.reset();
}

void drop_attention_expand(LatentAttentionState& state) {
  for (Tensor* done : made_by_expand(state)) done->reset();
}

// Uncompressed queries are columns of the projection down.
std::vector<Tensor*> made_by_expand(LatentAttentionState& state) {
  std::vector<Tensor*> made{&state.q_norm.y_TD,
                            &state.q_norm.rstd_T1,
                            &state.kv_norm.y_TD,
                            &state.kv_norm.rstd_T1,
                            &state.k_TK,
                            &state.v_TV};
  const bool is_view = state.q_TQ.defined() && state.q_TQ.shares_block(state.down_TC);
  if (!is_view) made.push_back(&state.q_TQ);
  return made;
}

std::vector<Tensor*> made_by_core(LatentAttentionState& state) {
  return {&state.o_TV, &state.lse_HT};
}

}  // namespace weft::model
