#include "weft/optim/adamw.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/tensor/device.h"
#include "weft/tensor/pool.h"

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
             Tensor weights_N,
             Tensor gradients_N,
             std::vector<Segment> segments,
             const StateDtypes& dtypes,
             Residence residence)
    : weights_N_(std::move(weights_N)),
      gradients_N_(std::move(gradients_N)),
      segments_(join_segments(std::move(segments), weights_N_.elements())) {
  const auto make = [&](DType dtype) {
    if (residence == Residence::Device) {
      return Tensor(pool, dtype, weights_N_.shape(), Tag::Optimizer);
    }
    return Tensor::host_visible(pool, dtype, weights_N_.shape(), Tag::Offloaded);
  };
  moment1_N_ = make(dtypes.moment1);
  moment2_N_ = make(dtypes.moment2);
  const bool needs_master = weights_N_.dtype() != DType::F32 || residence == Residence::Host;
  master_N_ = needs_master ? make(dtypes.master) : weights_N_;
}

AdamW::AdamW(Pool& pool,
             Stream& stream,
             Tensor weights_N,
             Tensor gradients_N,
             std::vector<Segment> segments,
             const StateDtypes& dtypes)
    : AdamW(pool,
            std::move(weights_N),
            std::move(gradients_N),
            std::move(segments),
            dtypes,
            Residence::Device) {
  for (const Tensor& moment : {moment1_N_, moment2_N_}) kernels::zero(stream, moment);
  refresh_master(stream);
}

AdamW AdamW::offloaded(Pool& pool,
                       Stream& host,
                       Stream& stream,
                       Tensor weights_N,
                       Tensor gradients_N,
                       std::vector<Segment> segments,
                       const StateDtypes& dtypes) {
  CHECK(dtypes.master != DType::I16, "masters in host memory do not see the weights");
  AdamW made(pool,
             std::move(weights_N),
             std::move(gradients_N),
             std::move(segments),
             dtypes,
             Residence::Host);
  for (const Tensor& moment : {made.moment1_N_, made.moment2_N_}) kernels::zero(host, moment);
  made.refresh_master(stream);
  return made;
}

void AdamW::refresh_master(Stream& stream) {
  if (master_N_.shares_block(weights_N_)) return;
  if (master_N_.dtype() == DType::I16) return kernels::zero(stream, master_N_);
  if (master_N_.dtype() == DType::F16) {
    return kernels::masters_in_half(stream, master_N_, weights_N_);
  }
  kernels::copy(stream, master_N_, weights_N_);
}

bool AdamW::master_is_copy() const {
  return weights_N_.dtype() == DType::F32 && !master_N_.shares_block(weights_N_);
}

// Runs without weight decay, counted from the first of the elements.
std::vector<kernels::ElementRun> AdamW::undecayed(const config::OptimizerConfig& config,
                                                  const Range& elements) const {
  std::vector<kernels::ElementRun> runs;
  if (config.weight_decay_scope == config::DecayScope::All) return runs;
  for (const Segment& segment : segments_) {
    if (segment.decay == Decay::Yes) continue;
    const std::int64_t begin = std::max<std::int64_t>(segment.begin - elements.begin, 0);
    const std::int64_t end =
        std::min(segment.begin + segment.count - elements.begin, elements.count);
    if (begin < end) runs.push_back({.begin = begin, .end = end});
  }
  return runs;
}

kernels::AdamW AdamW::options(const config::OptimizerConfig& config,
                              const Applied& applied,
                              const Range& elements) const {
  return {.learning_rate = static_cast<float>(applied.learning_rate),
          .beta1 = static_cast<float>(config.adam_beta1),
          .beta2 = static_cast<float>(config.adam_beta2),
          .epsilon = static_cast<float>(config.adam_eps),
          .weight_decay = static_cast<float>(config.weight_decay),
          .gradient_scale = static_cast<float>(applied.gradient_scale),
          .step = applied.step,
          .undecayed = undecayed(config, elements)};
}

void AdamW::apply(Stream& stream,
                  const config::OptimizerConfig& config,
                  const Applied& applied) const {
  kernels::adamw(stream,
                 weights_N_,
                 master_N_,
                 moment1_N_,
                 moment2_N_,
                 gradients_N_,
                 options(config, applied, {.begin = 0, .count = weights_N_.elements()}));
}

Tensor AdamW::new_weights(const Range& elements, const Tensor& room) const {
  if (master_is_copy()) return master_N_.range(elements.begin, {elements.count});
  return room.range(0, {elements.count});
}

void AdamW::apply_on_host(Stream& host,
                          const config::OptimizerConfig& config,
                          const Applied& applied,
                          const Range& elements,
                          const Tensor& gradients,
                          const Tensor& weights) const {
  const auto part = [&](const Tensor& all) { return all.range(elements.begin, {elements.count}); };
  kernels::adamw(host,
                 weights,
                 part(master_N_),
                 part(moment1_N_),
                 part(moment2_N_),
                 gradients,
                 options(config, applied, elements));
}

}  // namespace weft::optim
