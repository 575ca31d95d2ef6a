#include "weft/model/tensor_copies.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::model {
namespace {

using derive::AxisSplit;
using derive::SplitBlock;
using tensor::Range;

// Copied runs of one parameter's elements.
std::vector<CopiedRange> copied_of(const ParameterSpec& spec, std::int64_t tp) {
  const auto split = std::ranges::find(spec.splits, Axis::Tp, &AxisSplit::axis);
  if (split == spec.splits.end()) return {{.elements = {.count = spec.shape.elements()}}};
  std::vector<CopiedRange> copied;
  std::int64_t begin = 0;  // start of a block, in the rank's part of the dim
  for (const SplitBlock& block : split->blocks) {
    const std::int64_t parts = block.most_parts == 0 ? tp : std::min(tp, block.most_parts);
    const std::int64_t count = block.count / parts;
    if (parts < tp) {
      CHECK(split->dim == 0, "{}: copies of columns", spec.name);
      const std::int64_t row = spec.shape.elements() / spec.shape[0];
      copied.push_back({.elements = {.begin = begin * row, .count = count * row}, .parts = parts});
    }
    begin += count;
  }
  return copied;
}

}  // namespace

std::vector<CopiedRange> copied_ranges(const Parameters& parameters, std::int64_t tp) {
  std::vector<CopiedRange> all;
  if (tp == 1) return all;
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.spec.home != Home::Dense) continue;
    for (CopiedRange copied : copied_of(parameter.spec, tp)) {
      copied.elements.begin += parameter.offset;
      all.push_back(copied);
    }
  }
  std::ranges::sort(all, {}, [](const CopiedRange& copied) { return copied.elements.begin; });
  std::vector<CopiedRange> merged;
  for (const CopiedRange& next : all) {
    const bool goes_on = !merged.empty() && merged.back().parts == next.parts &&
                         merged.back().elements.end() == next.elements.begin;
    if (goes_on) {
      merged.back().elements.count += next.elements.count;
    } else {
      merged.push_back(next);
    }
  }
  return merged;
}

bool is_first_holder(std::int64_t parts, std::int64_t tp, std::int64_t tp_rank) {
  CHECK(tp % parts == 0, "{} parts on {} ranks", parts, tp);
  return tp_rank % (tp / parts) == 0;
}

std::vector<CopiedRange> within(const std::vector<CopiedRange>& copied,
                                const std::vector<Range>& runs) {
  std::vector<CopiedRange> inside;
  for (const Range& run : runs) {
    for (const CopiedRange& one : copied) {
      const Range common = tensor::common(one.elements, run);
      if (common.count > 0) inside.push_back({.elements = common, .parts = one.parts});
    }
  }
  return inside;
}

std::vector<Range> counted_ranges(const std::vector<Range>& runs,
                                  const std::vector<CopiedRange>& copied,
                                  std::int64_t tp,
                                  std::int64_t tp_rank) {
  std::vector<Range> counted;
  for (const Range& run : runs) {
    std::int64_t begin = run.begin;
    const auto count_to = [&](std::int64_t end) {
      if (end > begin) counted.push_back({.begin = begin, .count = end - begin});
    };
    for (const CopiedRange& one : within(copied, {run})) {
      if (is_first_holder(one.parts, tp, tp_rank)) continue;
      count_to(one.elements.begin);
      begin = one.elements.end();
    }
    count_to(run.end());
  }
  return counted;
}

}  // namespace weft::model
