#include "weft/train/optimizers.h"

#include "weft/base/casts.h"
#include "weft/base/check.h"

namespace weft::train {
namespace {

using model::Home;
using tensor::Range;

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

// Makes the shares of one home.
class ShareMaker {
 public:
  ShareMaker(tensor::Pool& pool,
             tensor::Stream& stream,
             tensor::Stream* host,
             const model::Parameters& parameters,
             Home home,
             std::vector<OptimizerShare>& shares)
      : pool_(pool),
        stream_(stream),
        host_(host),
        parameters_(parameters),
        home_(home),
        shares_(shares) {}

  void add(int chunk, const Range& range, std::optional<int> offloaded = std::nullopt) {
    const model::ParameterBuffer& buffer = parameters_.buffer(home_);
    tensor::Tensor weights = buffer.weights.range(range.begin, {range.count});
    tensor::Tensor gradients = buffer.gradients.range(range.begin, {range.count});
    std::vector<optim::Segment> segments = segments_of(parameters_, home_, range);
    optim::AdamW adamw =
        offloaded ? optim::AdamW::offloaded(pool_, *host_, stream_, weights, gradients, segments)
                  : optim::AdamW(pool_, stream_, weights, gradients, segments);
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
  const model::Parameters& parameters_;
  const Home home_;
  std::vector<OptimizerShare>& shares_;
};

}  // namespace

std::vector<OptimizerShare> make_optimizers(tensor::Pool& pool,
                                            tensor::Stream& stream,
                                            const model::Parameters& parameters,
                                            const Groups& groups,
                                            const derive::OptimizerOffload& offload,
                                            tensor::Stream* host) {
  CHECK(!offload.is_on() || host != nullptr, "nobody to work on host memory");
  std::vector<OptimizerShare> shares;
  for (const Home home : {Home::Dense, Home::Expert}) {
    ShareMaker maker(pool, stream, host, parameters, home, shares);
    const model::BufferLayout& layout = parameters.buffer(home).layout;
    if (layout.shards == 1 && !offload.is_on()) {
      maker.add(0, {.begin = 0, .count = layout.elements});
      continue;
    }
    for (int i = 0; i < static_cast<int>(layout.buckets.size()); ++i) {
      const model::Bucket& bucket = layout.buckets[base::at(i)];
      const Range own = layout.shards == 1 ? bucket.elements
                                           : layout.shard(bucket, groups.reduction(home).rank());
      const std::int64_t there = offload.elements(own.count);
      if (there > 0) maker.add(bucket.chunk, {.begin = own.begin, .count = there}, i);
      if (there == own.count) continue;
      maker.add(bucket.chunk, {.begin = own.begin + there, .count = own.count - there});
    }
  }
  return shares;
}

}  // namespace weft::train
