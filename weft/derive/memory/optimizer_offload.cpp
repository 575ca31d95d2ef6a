#include "weft/derive/memory/optimizer_offload.h"

#include <algorithm>
#include <cmath>

#include "weft/base/check.h"

namespace weft::derive {
namespace {

// elements: parameters' alignment, sufficient for any vector unit
constexpr std::int64_t kCutMultiple = 64;

std::int64_t up_to_cut(std::int64_t elements) {
  return (elements + kCutMultiple - 1) / kCutMultiple * kCutMultiple;
}

}  // namespace

std::int64_t OptimizerOffload::elements(std::int64_t share) const {
  const auto wanted = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(share)));
  return std::min(share, up_to_cut(wanted));
}

std::vector<base::Range> OptimizerOffload::buckets(std::int64_t share) const {
  const std::int64_t all = elements(share);
  std::vector<base::Range> buckets;
  if (all == 0) return buckets;
  CHECK(bucket_size > 0, "buckets of {} elements", bucket_size);
  const std::int64_t count = (all + bucket_size - 1) / bucket_size;
  const std::int64_t each = up_to_cut((all + count - 1) / count);
  for (std::int64_t begin = 0; begin < all; begin += each) {
    buckets.push_back({.begin = begin, .count = std::min(each, all - begin)});
  }
  return buckets;
}

OptimizerOffload optimizer_offload(const config::Config& config) {
  const config::OptimizerConfig& optimizer = config.optimizer;
  if (!optimizer.optimizer_cpu_offload) return {};
  return {.fraction = optimizer.optimizer_offload_fraction,
          .bucket_size = config.runtime.optimizer_offload_bucket_size,
          .order = optimizer.overlap_cpu_optimizer_d2h_h2d ? OffloadOrder::Overlapped
                                                           : OffloadOrder::OneByOne};
}

}  // namespace weft::derive
