#include "weft/derive/memory/buffer_layout.h"

#include <numeric>

#include "weft/base/check.h"

namespace weft::derive {
namespace {

constexpr std::int64_t kStartMultiple = 64;  // elements; alignment of a parameter's start
constexpr std::int64_t kShareMultiple = 128;

std::int64_t up_to(std::int64_t elements, std::int64_t multiple) {
  return (elements + multiple - 1) / multiple * multiple;
}

// Bucket sizes of the first chunk, the only one that is cut. full 0: never full; most 0: no limit.
struct BucketSize {
  std::int64_t full = 0, most = 0;
};

BucketSize bucket_size(std::span<const BufferItem> items, const BufferRules& rules) {
  std::int64_t elements = 0;
  for (const BufferItem& item : items) elements += item.chunk == 0 ? item.elements : 0;
  const auto one_of = [elements](std::int64_t parts) { return (elements + parts - 1) / parts; };
  if (rules.buckets > 0) return {.full = one_of(rules.buckets)};
  const bool is_cut = rules.bucket_size > 0 && rules.portions > 1;
  return {.full = rules.bucket_size, .most = is_cut ? one_of(rules.portions) : 0};
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
  const BucketSize size = bucket_size(items, rules);
  bool is_full = true;
  for (int i = static_cast<int>(items.size()); i-- > 0;) {
    const BufferItem& item = items[static_cast<std::size_t>(i)];
    const auto held_with = [&](std::int64_t more) {
      return up_to(layout.elements, kStartMultiple) + more - layout.buckets.back().elements.begin;
    };
    const bool goes_on =
        !is_full && layout.buckets.back().chunk == item.chunk &&
        (size.most == 0 || item.chunk > 0 || held_with(item.elements) <= size.most);
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
    const bool is_cut = size.full > 0 && item.chunk == 0;
    is_full = item.company == Company::Alone || (is_cut && held >= size.full);
  }
  close();
  return layout;
}

}  // namespace weft::derive
