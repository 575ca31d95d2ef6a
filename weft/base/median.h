// Median, for measurements that include disturbed ones.
#pragma once

#include <algorithm>
#include <vector>

#include "weft/base/check.h"

namespace weft::base {

// For an even count: mean of the middle two.
inline double median(std::vector<double> values) {
  CHECK(!values.empty(), "the median of nothing");
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace weft::base
