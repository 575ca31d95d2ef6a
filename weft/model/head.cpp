#include "weft/model/head.h"

#include <algorithm>

#include "weft/model/product.h"

namespace weft::model {
namespace {

// Rows as wide as the largest part of the vocabulary, so that every rank takes equal bytes.
Tensor logits_in(DType format, const Context& context, std::int64_t tokens, std::int64_t ids) {
  const config::ModelConfig& config = context.config;
  const std::int64_t widest = config.padded_vocab_size() / config.tensor_model_parallel_size;
  return context.activation(format, {tokens, widest}).columns(0, ids);
}

// Memory of the logits if the formats match, or if no copy may exist beside them.
Tensor memory_of_gradients(const Context& context,
                           const ProductFormats& formats,
                           const Tensor& logits_TV) {
  if (formats.input == formats.result) return logits_TV;
  if (context.config.cross_entropy_loss_fusion) return logits_TV.front_halves();
  return logits_in(formats.input, context, logits_TV.dim(0), logits_TV.dim(1));
}

float scale_of_gradients(const Context& context, std::int64_t labelled) {
  return context.loss_scale / static_cast<float>(labelled);
}

// Logits, loss and gradient of tokens [begin, begin + count).
void head_chunk_forward(const Context& context,
                        HeadState& state,
                        const HeadWeights& weights,
                        const Tensor& labels_T,
                        std::int64_t labelled,
                        const tensor::Range& tokens) {
  const auto part = [&](const Tensor& all) { return all.rows(tokens.begin, tokens.count); };
  const Product& head = weights.head_VD;
  const Tensor logits_CV = logits_in(head.formats.result, context, tokens.count, head.n());
  const Tensor sums_C2 = context.activation_fp32({tokens.count, 2});
  product_forward(context, logits_CV, part(state.norm.y_TD), head);
  kernels::cross_entropy_sums(context.stream,
                              sums_C2,
                              logits_CV,
                              part(labels_T),
                              context.other_ids);
  kernels::cross_entropy_forward(context.stream,
                                 part(state.loss_T),
                                 part(state.lse_T),
                                 sums_C2,
                                 part(labels_T));
  kernels::cross_entropy_dgrad(context.stream,
                               part(state.dlogits_TV),
                               logits_CV,
                               part(state.lse_T),
                               part(labels_T),
                               scale_of_gradients(context, labelled),
                               context.other_ids);
}

void head_chunks_forward(const Context& context,
                         HeadState& state,
                         const HeadWeights& weights,
                         const Tensor& labels_T,
                         std::int64_t labelled) {
  const Product& head = weights.head_VD;
  const std::int64_t tokens = labels_T.dim(0);
  state.dlogits_TV = logits_in(head.formats.input, context, tokens, head.n());
  state.loss_T = context.activation_fp32(labels_T.shape());
  state.lse_T = context.activation_fp32(labels_T.shape());
  for (std::int64_t begin = 0; begin < tokens; begin += context.logits_chunk) {
    const std::int64_t count = std::min(context.logits_chunk, tokens - begin);
    head_chunk_forward(context, state, weights, labels_T, labelled, {begin, count});
  }
}

}  // namespace

void head_norm_forward(const Context& context,
                       HeadState& state,
                       const HeadWeights& weights,
                       const Tensor& x_TD) {
  norm_forward(context, state.norm, x_TD, weights.norm_D);
}

void head_logits_forward(const Context& context,
                         HeadState& state,
                         const HeadWeights& weights,
                         const Tensor& labels_T,
                         std::int64_t labelled) {
  if (context.logits_chunk > 0) {
    return head_chunks_forward(context, state, weights, labels_T, labelled);
  }
  const Product& head = weights.head_VD;
  const std::int64_t tokens = labels_T.dim(0);
  state.logits_TV = logits_in(head.formats.result, context, tokens, head.n());
  product_forward(context, state.logits_TV, state.norm.y_TD, head);
  state.sums_T2 = context.activation_fp32({tokens, 2});
  kernels::cross_entropy_sums(context.stream,
                              state.sums_T2,
                              state.logits_TV,
                              labels_T,
                              context.other_ids);
}

void head_loss_forward(const Context& context,
                       HeadState& state,
                       const Tensor& labels_T,
                       const Tensor& loss_sum_1) {
  if (state.loss_T.defined()) {
    kernels::sum(context.stream, loss_sum_1, state.loss_T);
    return state.loss_T.reset();
  }
  state.lse_T = context.activation_fp32(labels_T.shape());
  Tensor loss_T = context.activation_fp32(labels_T.shape());
  kernels::cross_entropy_forward(context.stream, loss_T, state.lse_T, state.sums_T2, labels_T);
  state.sums_T2.reset();
  kernels::sum(context.stream, loss_sum_1, loss_T);
}

void head_loss_dgrad(const Context& context,
                     HeadState& state,
                     const HeadWeights& weights,
                     const Tensor& labels_T,
                     std::int64_t labelled) {
  if (state.dlogits_TV.defined()) return state.lse_T.reset();
  state.dlogits_TV = memory_of_gradients(context, weights.head_VD.formats, state.logits_TV);
  kernels::cross_entropy_dgrad(context.stream,
                               state.dlogits_TV,
                               state.logits_TV,
                               state.lse_T,
                               labels_T,
                               scale_of_gradients(context, labelled),
                               context.other_ids);
  state.logits_TV.reset();
  state.lse_T.reset();
}

void head_logits_dgrad(const Context& context, HeadState& state, const HeadWeights& weights) {
  state.norm.dy_TD = product_dgrad(context, state.dlogits_TV, weights.head_VD);
}

Tensor head_norm_dgrad(const Context& context,
                       HeadState& state,
                       const HeadWeights& weights,
                       const Tensor& x_TD) {
  Tensor dx_TD = context.output(x_TD.shape());
  kernels::rms_norm_dgrad(context.stream,
                          dx_TD,
                          state.norm.dy_TD,
                          x_TD,
                          weights.norm_D.values,
                          state.norm.rstd_T1);
  return dx_TD;
}

void head_logits_wgrad(const Context& context, HeadState& state, const HeadWeights& weights) {
  product_wgrad(context, weights.head_VD, state.dlogits_TV, state.norm.y_TD);
  state.dlogits_TV.reset();
  state.norm.y_TD.reset();
}

void head_norm_wgrad(const Context& context,
                     HeadState& state,
                     const HeadWeights& weights,
                     const Tensor& x_TD) {
  norm_wgrad(context, state.norm, x_TD, weights.norm_D);
  state.norm.rstd_T1.reset();
  state.norm.dy_TD.reset();
}

}  // namespace weft::model
