#include "weft/model/moe/balance.h"

#include "weft/base/check.h"

namespace weft::model {
namespace {

using config::LoadBalancing;

bool has_loss(const config::ModelConfig& config, LoadBalancing kind) {
  return config.aux_loss_coeff(kind) != 0;
}

// The k best experts by score alone; by logit, because scores grow with their logits.
Tensor best_experts(const Context& context, const Tensor& logits_TE, const Tensor& best_Tk) {
  if (best_Tk.defined()) return best_Tk;
  const Shape shape{logits_TE.dim(0), context.config.moe_router_topk};
  Tensor p_Tk = context.activation_fp32(shape), experts_Tk = context.integers(shape);
  kernels::top_k_forward(context.stream, p_Tk, experts_Tk, logits_TE, {}, {});
  return experts_Tk;
}

// Runs of rows that are counted together, and the place of the rank's tokens among them.
struct Counted {
  std::int64_t count = 1;  // runs of tokens
  kernels::TokenRuns runs = {};
};

Counted by_sequence(const Context& context, std::int64_t tokens) {
  const TokenShare& share = context.share;
  return {.count = std::max<std::int64_t>(1, tokens * share.tp / context.sequence),
          .runs = {.first = share.tp_rank * tokens, .length = context.sequence}};
}

Tensor rows_of(const Context& context, const Tensor& experts_Tk, const Counted& by) {
  const Shape shape{by.count, context.config.experts()};
  Tensor rows_GE(context.pool, DType::I64, shape, Tag::Activations);
  kernels::zero(context.stream, rows_GE);
  kernels::count_experts(context.stream, rows_GE, experts_Tk, by.runs);
  return rows_GE;
}

void add_loss(const Context& context,
              const Tensor& sum_1,
              const Tensor& logits_TE,
              const Tensor& rows_GE,
              const kernels::TokenRuns& runs) {
  Tensor loss_1 = context.activation_fp32({1});
  kernels::balance_loss_forward(context.stream,
                                loss_1,
                                logits_TE,
                                rows_GE,
                                runs,
                                score_of(context.config));
  kernels::accumulate(context.stream, sum_1, loss_1);
}

// Factor on the gradient of a mean over this rank's tokens; ranks that share the micro-batch have
// equally many.
float scale_of(const Context& context, double coefficient) {
  return static_cast<float>(coefficient) * context.loss_scale /
         static_cast<float>(context.share.ranks);
}

void add_gradient(const Context& context,
                  const Tensor& dlogits_TE,
                  const Tensor& logits_TE,
                  const Tensor& rows_GE,
                  const kernels::TokenRuns& runs,
                  LoadBalancing kind) {
  Tensor more_TE = context.activation_fp32(logits_TE.shape());
  kernels::balance_loss_dgrad(context.stream,
                              more_TE,
                              logits_TE,
                              rows_GE,
                              runs,
                              score_of(context.config),
                              scale_of(context, context.config.aux_loss_coeff(kind)));
  kernels::add(context.stream, dlogits_TE, dlogits_TE, more_TE);
}

// Counts this rank's rows of the micro-batch, and of each of its sequences.
void count_shared(const Context& context, BalanceState& state, const Tensor& experts_Tk) {
  const Counted by = by_sequence(context, experts_Tk.dim(0));
  const std::int64_t batch = has_loss(context.config, LoadBalancing::AuxLoss) ? 1 : 0;
  const std::int64_t sequences = has_loss(context.config, LoadBalancing::SeqAuxLoss) ? by.count : 0;
  if (batch + sequences == 0) return;
  const Shape shape{batch + sequences, context.config.experts()};
  state.tally_RE = Tensor(context.pool, DType::I64, shape, Tag::Activations);
  kernels::zero(context.stream, state.tally_RE);
  if (batch > 0) {
    kernels::count_experts(context.stream, state.tally_RE.rows(0, batch), experts_Tk, {});
  }
  if (sequences > 0) {
    const Tensor rows_SE = state.tally_RE.rows(batch, sequences);
    kernels::count_experts(context.stream, rows_SE, experts_Tk, by.runs);
  }
}

// Losses and gradients from the rows of all ranks that share the micro-batch.
void tallied_dgrad(const Context& context,
                   BalanceState& state,
                   const Tensor& dlogits_TE,
                   const Tensor& logits_TE,
                   const RouterSums& sums) {
  const auto add = [&](LoadBalancing kind,
                       const Tensor& sum_1,
                       const Tensor& rows_GE,
                       const kernels::TokenRuns& runs) {
    add_loss(context, sum_1, logits_TE, rows_GE, runs);
    add_gradient(context, dlogits_TE, logits_TE, rows_GE, runs, kind);
  };
  std::int64_t first = 0;
  if (has_loss(context.config, LoadBalancing::AuxLoss)) {
    add(LoadBalancing::AuxLoss, sums.batch_loss_1, state.tally_RE.rows(first++, 1), {});
  }
  if (has_loss(context.config, LoadBalancing::SeqAuxLoss)) {
    const Counted by = by_sequence(context, logits_TE.dim(0));
    add(LoadBalancing::SeqAuxLoss,
        sums.sequence_loss_1,
        state.tally_RE.rows(first, by.count),
        by.runs);
  }
  state.tally_RE.reset();
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
    if (context.share.ranks > 1) {
      count_shared(context, state, experts_Tk);
    } else {
      if (batch) {
        add_loss(context, sums.batch_loss_1, logits_TE, rows_of(context, experts_Tk, {}), {});
      }
      if (sequence) {
        const Counted by = by_sequence(context, logits_TE.dim(0));
        const Tensor rows_SE = rows_of(context, experts_Tk, by);
        add_loss(context, sums.sequence_loss_1, logits_TE, rows_SE, by.runs);
      }
    }
    if (global) {
      kernels::count_experts(context.stream, sums.global_1E, experts_Tk, {});
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

void balance_tally(const Context& context, BalanceState& state, comm::Communicator& sharers) {
  if (!state.tally_RE.defined()) return;
  sharers.all_reduce(context.stream, state.tally_RE, comm::Reduce::Sum);
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
  if (context.share.ranks > 1) {
    tallied_dgrad(context, state, dlogits_TE, logits_TE, sums);
  } else if (batch || sequence) {
    const Tensor experts_Tk = best_experts(context, logits_TE, best_Tk);
    if (batch) {
      const Tensor rows_1E = rows_of(context, experts_Tk, {});
      add_gradient(context, dlogits_TE, logits_TE, rows_1E, {}, LoadBalancing::AuxLoss);
    }
    if (sequence) {
      const Counted by = by_sequence(context, logits_TE.dim(0));
      const Tensor rows_SE = rows_of(context, experts_Tk, by);
      add_gradient(context, dlogits_TE, logits_TE, rows_SE, by.runs, LoadBalancing::SeqAuxLoss);
    }
  }
  if (has_loss(config, LoadBalancing::GlobalAuxLoss)) {
    CHECK(state.all_1E.defined(), "global_aux_loss: the ranks have not exchanged their rows");
    add_loss(context, sums.global_loss_1, logits_TE, state.all_1E, {});
    add_gradient(context, dlogits_TE, logits_TE, state.all_1E, {}, LoadBalancing::GlobalAuxLoss);
    state.all_1E.reset();
  }
  if (config.moe_z_loss_coeff == 0) return;
  Tensor more_TE = context.activation_fp32(logits_TE.shape());
  kernels::z_loss_dgrad(context.stream,
                        more_TE,
                        logits_TE,
                        scale_of(context, config.moe_z_loss_coeff));
  kernels::add(context.stream, dlogits_TE, dlogits_TE, more_TE);
}

}  // namespace weft::model
