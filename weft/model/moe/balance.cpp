#include "weft/model/moe/balance.h"

#include "weft/base/check.h"

namespace weft::model {
namespace {

using config::LoadBalancing;

bool has_loss(const config::ModelConfig& config, LoadBalancing kind) {
  return config.aux_loss_coeff(kind) != 0;
}

// The k best experts by score alone: by logit, because scores grow with their logits.
Tensor best_experts(const Context& context, const Tensor& logits_TE, const Tensor& best_Tk) {
  if (best_Tk.defined()) return best_Tk;
  const Shape shape{logits_TE.dim(0), context.config.moe_router_topk};
  Tensor p_Tk = context.activation_fp32(shape), experts_Tk = context.integers(shape);
  kernels::top_k_forward(context.stream, p_Tk, experts_Tk, logits_TE, {}, {});
  return experts_Tk;
}

// Rows of each expert in each of some equal runs of tokens.
Tensor rows_of(const Context& context, const Tensor& experts_Tk, std::int64_t runs) {
  Tensor rows_GE(context.pool, DType::I64, {runs, context.config.experts()}, Tag::Activations);
  kernels::zero(context.stream, rows_GE);
  kernels::count_experts(context.stream, rows_GE, experts_Tk);
  return rows_GE;
}

std::int64_t sequences(const Context& context, const Tensor& logits_TE) {
  return std::max<std::int64_t>(1, logits_TE.dim(0) / context.sequence);
}

void add_loss(const Context& context,
              const Tensor& sum_1,
              const Tensor& logits_TE,
              const Tensor& rows_GE) {
  Tensor loss_1 = context.activation_fp32({1});
  kernels::balance_loss_forward(context.stream,
                                loss_1,
                                logits_TE,
                                rows_GE,
                                score_of(context.config));
  kernels::accumulate(context.stream, sum_1, loss_1);
}

void add_gradient(const Context& context,
                  const Tensor& dlogits_TE,
                  const Tensor& logits_TE,
                  const Tensor& rows_GE,
                  LoadBalancing kind) {
  Tensor more_TE = context.activation_fp32(logits_TE.shape());
  kernels::balance_loss_dgrad(
      context.stream,
      more_TE,
      logits_TE,
      rows_GE,
      score_of(context.config),
      static_cast<float>(context.config.aux_loss_coeff(kind)) * context.loss_scale);
  kernels::add(context.stream, dlogits_TE, dlogits_TE, more_TE);
}

}  // namespace

kernels::Score score_of(const config::ModelConfig& config) {
  switch (config.moe_router_score_function) {
    case config::ScoreFunction::Softmax:
      return kernels::Score::Softmax;
    case config::ScoreFunction::Sigmoid:
      return kernels::Score::Sigmoid;
    case config::ScoreFunction::SqrtSoftplus:
      return kernels::Score::SqrtSoftplus;
  }
  UNREACHABLE("score function {}", config::word(config.moe_router_score_function));
}

void balance_forward(const Context& context,
                     BalanceState& state,
                     const Tensor& logits_TE,
                     const Tensor& best_Tk,
                     const RouterSums& sums) {
  const config::ModelConfig& config = context.config;
  const bool batch = has_loss(config, LoadBalancing::AuxLoss);
  const bool sequence = has_loss(config, LoadBalancing::SeqAuxLoss);
  const bool global = has_loss(config, LoadBalancing::GlobalAuxLoss);
  if (batch || sequence || global) {
    const Tensor experts_Tk = best_experts(context, logits_TE, best_Tk);
    if (batch) {
      add_loss(context, sums.batch_loss_1, logits_TE, rows_of(context, experts_Tk, 1));
    }
    if (sequence) {
      const Tensor rows_SE = rows_of(context, experts_Tk, sequences(context, logits_TE));
      add_loss(context, sums.sequence_loss_1, logits_TE, rows_SE);
    }
    if (global) {
      kernels::count_experts(context.stream, sums.global_1E, experts_Tk);
      state.own_1E = Tensor(context.pool, DType::I64, sums.global_1E.shape(), Tag::Activations);
      kernels::copy(context.stream, state.own_1E, sums.global_1E);
    }
  }
  if (config.moe_z_loss_coeff == 0) return;
  Tensor loss_1 = context.activation_fp32({1});
  kernels::z_loss_forward(context.stream, loss_1, logits_TE);
  kernels::accumulate(context.stream, sums.z_loss_1, loss_1);
}

void balance_exchange(const Context& context, BalanceState& state, comm::Communicator& others) {
  if (!state.own_1E.defined()) return;
  if (others.size() > 1) {
    others.all_reduce(context.stream, state.own_1E, comm::Reduce::Sum);
  }
  state.all_1E = std::move(state.own_1E);
  state.own_1E.reset();
}

void balance_dgrad(const Context& context,
                   BalanceState& state,
                   const Tensor& dlogits_TE,
                   const Tensor& logits_TE,
                   const Tensor& best_Tk,
                   const RouterSums& sums) {
  const config::ModelConfig& config = context.config;
  const bool batch = has_loss(config, LoadBalancing::AuxLoss);
  const bool sequence = has_loss(config, LoadBalancing::SeqAuxLoss);
  if (batch || sequence) {
    const Tensor experts_Tk = best_experts(context, logits_TE, best_Tk);
    if (batch) {
      const Tensor rows_1E = rows_of(context, experts_Tk, 1);
      add_gradient(context, dlogits_TE, logits_TE, rows_1E, LoadBalancing::AuxLoss);
    }
    if (sequence) {
      const Tensor rows_SE = rows_of(context, experts_Tk, sequences(context, logits_TE));
      add_gradient(context, dlogits_TE, logits_TE, rows_SE, LoadBalancing::SeqAuxLoss);
    }
  }
  if (has_loss(config, LoadBalancing::GlobalAuxLoss)) {
    CHECK(state.all_1E.defined(), "global_aux_loss: the ranks have not exchanged their rows");
    add_loss(context, sums.global_loss_1, logits_TE, state.all_1E);
    add_gradient(context, dlogits_TE, logits_TE, state.all_1E, LoadBalancing::GlobalAuxLoss);
    state.all_1E.reset();
  }
  if (config.moe_z_loss_coeff == 0) return;
  Tensor more_TE = context.activation_fp32(logits_TE.shape());
  kernels::z_loss_dgrad(context.stream,
                        more_TE,
                        logits_TE,
                        static_cast<float>(config.moe_z_loss_coeff) * context.loss_scale);
  kernels::add(context.stream, dlogits_TE, dlogits_TE, more_TE);
}

}  // namespace weft::model
