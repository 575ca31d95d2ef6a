#include "weft/derive/buffer_layout.h"

#include <algorithm>
#include <numeric>

#include "weft/base/check.h"

namespace weft::derive {
namespace {

constexpr std::int64_t kStartMultiple = 64;  // elements; where a parameter may start
constexpr std::int64_t kShareMultiple = 128;

std::int64_t up_to(std::int64_t elements, std::int64_t multiple) {
  return (elements + multiple - 1) / multiple * multiple;
}

// Elements that fill a bucket of the first chunk; 0: nothing does.
std::int64_t bucket_size(std::span<const BufferItem> items, const BufferRules& rules) {
  if (rules.buckets == 0 && rules.bucket_size == 0) return 0;
  std::int64_t elements = 0;
  for (const BufferItem& item : items) elements += item.chunk == 0 ? item.elements : 0;
  const auto one_of = [elements](std::int64_t buckets) {
    return (elements + buckets - 1) / buckets;
  };
  if (rules.buckets > 0) return one_of(rules.buckets);
  return std::min(rules.bucket_size, one_of(rules.least_buckets));
}

}  // namespace

base::Range BufferLayout::shard(const Bucket& bucket, std::int64_t rank) const {
  CHECK(rank >= 0 && rank < shards, "shard {} of {}", rank, shards);
  const std::int64_t each = bucket.elements.count / shards;
  return {.begin = bucket.elements.begin + rank * each, .count = each};
}

BufferLayout lay_out(std::span<const BufferItem> items, const BufferRules& rules) {
  const std::int64_t end_multiple =
      rules.shards > 1 ? std::lcm(rules.shards, kShareMultiple) : kStartMultiple;
  BufferLayout layout{.offsets = std::vector<std::int64_t>(items.size()),
                      .buckets = {},
                      .elements = 0,
                      .shards = rules.shards};
  const auto close = [&] {
    if (layout.buckets.empty()) return;
    layout.elements = up_to(layout.elements, end_multiple);
    base::Range& last = layout.buckets.back().elements;
    last.count = layout.elements - last.begin;
  };
  const std::int64_t enough = bucket_size(items, rules);
  bool is_full = true;
  for (int i = static_cast<int>(items.size()); i-- > 0;) {
    const BufferItem& item = items[static_cast<std::size_t>(i)];
    const bool goes_on = !is_full && layout.buckets.back().chunk == item.chunk;
    if (!goes_on || item.company == Company::Alone) {
      close();
      layout.buckets.push_back(
          {.elements = {.begin = layout.elements, .count = 0}, .items = {}, .chunk = item.chunk});
    }
    layout.elements = up_to(layout.elements, kStartMultiple);
    layout.offsets[static_cast<std::size_t>(i)] = layout.elements;
    layout.elements += item.elements;
    layout.buckets.back().items.push_back(i);
    const std::int64_t held = layout.elements - layout.buckets.back().elements.begin;
    const bool is_cut = enough > 0 && item.chunk == 0;
    is_full = item.company == Company::Alone || (is_cut && held >= enough);
  }
  close();
  return layout;
}

}  // namespace weft::derive
