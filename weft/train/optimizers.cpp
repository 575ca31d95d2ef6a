#include "weft/train/optimizers.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"
#include "weft/derive/memory/memory.h"

namespace weft::train {
namespace {

using model::Home;
using tensor::DType;
using tensor::Range;

DType master_dtype(const config::Config& config) {
  if (derive::keeps_half_masters(config)) return DType::F16;
  return derive::keeps_remainders(config) ? DType::I16 : DType::F32;
}

std::vector<optim::Segment> segments_of(const model::Parameters& parameters,
                                        Home home,
                                        const Range& range) {
  std::vector<optim::Segment> segments;
  for (const model::ParameterRange& inside : parameters.in_range(home, range)) {
    const bool decays = inside.parameter->spec.is_matrix();
    segments.push_back({.begin = inside.at,
                        .count = inside.elements.count,
                        .decay = decays ? optim::Decay::Yes : optim::Decay::No});
  }
  return segments;
}

// Makes the optimizer shares of one home.
class ShareMaker {
 public:
  ShareMaker(tensor::Pool& pool,
             tensor::Stream& stream,
             tensor::Stream* host,
             const optim::StateDtypes& dtypes,
             const model::Parameters& parameters,
             Home home,
             std::vector<OptimizerShare>& shares)
      : pool_(pool),
        stream_(stream),
        host_(host),
        dtypes_(dtypes),
        parameters_(parameters),
        home_(home),
        shares_(shares) {}

  void add(int chunk, const Range& range, std::optional<int> offloaded = std::nullopt) {
    const model::ParameterBuffer& buffer = parameters_.buffer(home_);
    tensor::Tensor weights = buffer.weights.range(range.begin, {range.count});
    tensor::Tensor gradients = buffer.gradients.range(range.begin, {range.count});
    std::vector<optim::Segment> segments = segments_of(parameters_, home_, range);
    optim::AdamW adamw =
        offloaded
            ? optim::AdamW::offloaded(pool_, *host_, stream_, weights, gradients, segments, dtypes_)
            : optim::AdamW(pool_, stream_, weights, gradients, segments, dtypes_);
    shares_.push_back({.home = home_,
                       .chunk = chunk,
                       .range = range,
                       .adamw = std::move(adamw),
                       .offloaded = offloaded});
  }

 private:
  tensor::Pool& pool_;
  tensor::Stream& stream_;
  tensor::Stream* const host_;
  const optim::StateDtypes dtypes_;
  const model::Parameters& parameters_;
  const Home home_;
  std::vector<OptimizerShare>& shares_;
};

}  // namespace

optim::StateDtypes state_dtypes(const config::Config& config) {
  if (!config.optimizer.use_precision_aware_optimizer) return {};
  return {.moment1 = config.optimizer.exp_avg_dtype,
          .moment2 = config.optimizer.exp_avg_sq_dtype,
          .master = master_dtype(config)};
}

std::vector<OptimizerShare> make_optimizers(tensor::Pool& pool,
                                            tensor::Stream& stream,
                                            const config::Config& config,
                                            const model::Parameters& parameters,
                                            const Groups& groups,
                                            tensor::Stream* host) {
  const derive::OptimizerOffload offload = derive::optimizer_offload(config);
  CHECK(!offload.is_on() || host != nullptr, "nobody to work on host memory");
  std::vector<OptimizerShare> shares;
  for (const Home home : {Home::Dense, Home::Expert}) {
    ShareMaker maker(pool, stream, host, state_dtypes(config), parameters, home, shares);
    const model::BufferLayout& layout = parameters.buffer(home).layout;
    if (layout.shards == 1 && !offload.is_on()) {
      maker.add(0, {.begin = 0, .count = layout.elements});
      continue;
    }
    for (int i = 0; i < static_cast<int>(layout.buckets.size()); ++i) {
      const model::Bucket& bucket = layout.buckets[base::at(i)];
      const Range own =
          layout.shards == 1 ? bucket.elements : layout.shard(bucket, groups.instance(home).rank());
      const std::int64_t there = offload.elements(own.count);
      if (there > 0) maker.add(bucket.chunk, {.begin = own.begin, .count = there}, i);
      if (there == own.count) continue;
      maker.add(bucket.chunk, {.begin = own.begin + there, .count = own.count - there});
    }
  }
  return shares;
}

}  // namespace weft::train
