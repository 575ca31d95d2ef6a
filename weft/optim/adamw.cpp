#include "weft/optim/adamw.h"

namespace weft::optim {

using tensor::DType;
using tensor::Tag;

std::vector<Segment> join_segments(std::vector<Segment> segments, std::int64_t end) {
  std::vector<Segment> joined;
  for (const Segment& segment : segments) {
    if (!joined.empty()) joined.back().count = segment.begin - joined.back().begin;
    if (joined.empty() || joined.back().decay != segment.decay) joined.push_back(segment);
  }
  if (!joined.empty()) joined.back().count = end - joined.back().begin;
  return joined;
}

AdamW::AdamW(Pool& pool,
             Stream& stream,
             Tensor weights_N,
             Tensor gradients_N,
             std::vector<Segment> segments,
             const StateDtypes& dtypes)
    : weights_N_(std::move(weights_N)),
      gradients_N_(std::move(gradients_N)),
      moment1_N_(pool, dtypes.moment1, weights_N_.shape(), Tag::Optimizer),
      moment2_N_(pool, dtypes.moment2, weights_N_.shape(), Tag::Optimizer),
      segments_(join_segments(std::move(segments), weights_N_.elements())) {
  for (const Tensor& moment : {moment1_N_, moment2_N_}) kernels::zero(stream, moment);
  const bool needs_master = weights_N_.dtype() != DType::F32;
  master_N_ =
      needs_master ? Tensor(pool, dtypes.master, weights_N_.shape(), Tag::Optimizer) : weights_N_;
  refresh_master(stream);
}

void AdamW::refresh_master(Stream& stream) {
  if (weights_N_.dtype() == DType::F32) return;
  if (master_N_.dtype() == DType::I16) return kernels::zero(stream, master_N_);
  kernels::copy(stream, master_N_, weights_N_);
}

std::vector<kernels::ElementRun> AdamW::undecayed(const config::OptimizerConfig& config) const {
  std::vector<kernels::ElementRun> runs;
  if (config.weight_decay_scope == config::DecayScope::All) return runs;
  for (const Segment& segment : segments_) {
    if (segment.decay == Decay::Yes) continue;
    runs.push_back({.begin = segment.begin, .end = segment.begin + segment.count});
  }
  return runs;
}

void AdamW::apply(Stream& stream,
                  const config::OptimizerConfig& config,
                  double learning_rate,
                  double gradient_scale,
                  std::int64_t step) const {
  kernels::adamw(stream,
                 weights_N_,
                 master_N_,
                 moment1_N_,
                 moment2_N_,
                 gradients_N_,
                 {.learning_rate = static_cast<float>(learning_rate),
                  .beta1 = static_cast<float>(config.adam_beta1),
                  .beta2 = static_cast<float>(config.adam_beta2),
                  .epsilon = static_cast<float>(config.adam_eps),
                  .weight_decay = static_cast<float>(config.weight_decay),
                  .gradient_scale = static_cast<float>(gradient_scale),
                  .step = step,
                  .undecayed = undecayed(config)});
}

}  // namespace weft::optim
