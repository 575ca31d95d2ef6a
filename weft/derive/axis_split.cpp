#include "weft/derive/axis_split.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/block/ends.h"
#include "weft/derive/blocks.h"

namespace weft::derive {
namespace {

using base::Range;

int rank_on(const AxisRanks& ranks, Axis axis) {
  switch (axis) {
    case Axis::Tp:
      return ranks.tp;
    case Axis::Ep:
      return ranks.ep;
    case Axis::Etp:
      return ranks.etp;
  }
  UNREACHABLE("axis {}", static_cast<int>(axis));
}

std::vector<Range> ranges_of(const AxisSplit& split, std::int64_t rank, std::int64_t ranks) {
  std::vector<Range> ranges;
  std::int64_t begin = 0;
  for (const SplitBlock& block : split.blocks) {
    const std::int64_t parts = block.most_parts == 0 ? ranks : std::min(ranks, block.most_parts);
    const std::int64_t divided = std::max(block.count, block.padded);
    CHECK(divided % parts == 0, "{} elements in {} parts", divided, parts);
    const std::int64_t each = divided / parts;
    const Range own = base::common({.begin = begin + rank * parts / ranks * each, .count = each},
                                   {.begin = begin, .count = block.count});
    const bool goes_on = !ranges.empty() && ranges.back().end() == own.begin;
    if (goes_on) {
      ranges.back().count += own.count;
    } else {
      ranges.push_back(own);
    }
    begin += block.count;
  }
  return ranges;
}

}  // namespace

AxisSplit vocabulary_split(const config::ModelConfig& config) {
  return block::table_split(vocabulary_of(config));
}

std::int64_t ranks_of(const config::ModelConfig& config, Axis axis) {
  switch (axis) {
    case Axis::Tp:
      return config.tensor_model_parallel_size;
    case Axis::Ep:
      return config.expert_model_parallel_size;
    case Axis::Etp:
      return config.expert_shards();
  }
  UNREACHABLE("axis {}", static_cast<int>(axis));
}

base::Slice part_of(const config::ModelConfig& config,
                    const base::Shape& global,
                    std::span<const AxisSplit> splits,
                    const AxisRanks& ranks) {
  std::vector<std::vector<Range>> dims = base::whole_slice(global).dims;
  for (const AxisSplit& split : splits) {
    std::vector<Range>& ranges = dims[static_cast<std::size_t>(split.dim)];
    ranges = ranges_of(split, rank_on(ranks, split.axis), ranks_of(config, split.axis));
  }
  return base::slice_of(global, std::move(dims));
}

}  // namespace weft::derive
