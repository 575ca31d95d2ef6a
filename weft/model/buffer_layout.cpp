#include "weft/model/buffer_layout.h"

#include <numeric>

#include "weft/base/check.h"

namespace weft::model {
namespace {

constexpr std::int64_t kStartMultiple = 64;  // elements; where a parameter may start
constexpr std::int64_t kShareMultiple = 128;

std::int64_t up_to(std::int64_t elements, std::int64_t multiple) {
  return (elements + multiple - 1) / multiple * multiple;
}

}  // namespace

tensor::Range BufferLayout::shard(const Bucket& bucket, std::int64_t rank) const {
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
    tensor::Range& last = layout.buckets.back().elements;
    last.count = layout.elements - last.begin;
  };
  bool is_full = true;
  for (int i = static_cast<int>(items.size()); i-- > 0;) {
    const BufferItem& item = items[static_cast<std::size_t>(i)];
    if (is_full || item.company == Company::Alone) {
      close();
      layout.buckets.push_back({.elements = {.begin = layout.elements, .count = 0}, .items = {}});
    }
    layout.elements = up_to(layout.elements, kStartMultiple);
    layout.offsets[static_cast<std::size_t>(i)] = layout.elements;
    layout.elements += item.elements;
    layout.buckets.back().items.push_back(i);
    const std::int64_t held = layout.elements - layout.buckets.back().elements.begin;
    is_full =
        item.company == Company::Alone || (rules.bucket_size > 0 && held >= rules.bucket_size);
  }
  close();
  return layout;
}

}  // namespace weft::model
