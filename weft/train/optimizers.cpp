#include "weft/train/optimizers.h"

#include "weft/base/check.h"
#include "weft/derive/memory.h"

namespace weft::train {
namespace {

using model::Home;
using tensor::DType;
using tensor::Range;

DType moment_dtype(config::MomentDtype dtype) {
  switch (dtype) {
    case config::MomentDtype::Fp32:
      return DType::F32;
    case config::MomentDtype::Fp16:
      return DType::F16;
    case config::MomentDtype::Bf16:
      return DType::BF16;
    case config::MomentDtype::Fp8:
      break;
  }
  UNREACHABLE("moments of {}", config::word(dtype));
}

optim::AdamW optimizer_of(tensor::Pool& pool,
                          tensor::Stream& stream,
                          const config::Config& config,
                          const model::Parameters& parameters,
                          Home home,
                          const Range& range) {
  std::vector<optim::Segment> segments;
  for (const model::ParameterRange& inside : parameters.in_range(home, range)) {
    const bool decays = inside.parameter->spec.is_matrix();
    segments.push_back({.begin = inside.at,
                        .count = inside.elements.count,
                        .decay = decays ? optim::Decay::Yes : optim::Decay::No});
  }
  const model::ParameterBuffer& buffer = parameters.buffer(home);
  return {pool,
          stream,
          buffer.weights.range(range.begin, {range.count}),
          buffer.gradients.range(range.begin, {range.count}),
          std::move(segments),
          state_dtypes(config)};
}

}  // namespace

optim::StateDtypes state_dtypes(const config::Config& config) {
  if (!config.optimizer.use_precision_aware_optimizer) return {};
  return {.moment1 = moment_dtype(config.optimizer.exp_avg_dtype),
          .moment2 = moment_dtype(config.optimizer.exp_avg_sq_dtype),
          .master = derive::keeps_remainders(config) ? DType::I16 : DType::F32};
}

std::vector<OptimizerShare> make_optimizers(tensor::Pool& pool,
                                            tensor::Stream& stream,
                                            const config::Config& config,
                                            const model::Parameters& parameters,
                                            const Groups& groups) {
  std::vector<OptimizerShare> shares;
  for (const Home home : {Home::Dense, Home::Expert}) {
    const auto add = [&](int chunk, const Range& range) {
      shares.push_back({.home = home,
                        .chunk = chunk,
                        .range = range,
                        .adamw = optimizer_of(pool, stream, config, parameters, home, range)});
    };
    const model::BufferLayout& layout = parameters.buffer(home).layout;
    if (layout.shards == 1) {
      add(0, {.begin = 0, .count = layout.elements});
      continue;
    }
    for (const model::Bucket& bucket : layout.buckets) {
      add(bucket.chunk, layout.shard(bucket, groups.reduction(home).rank()));
    }
  }
  return shares;
}

}  // namespace weft::train
