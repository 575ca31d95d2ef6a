// Sets of time: sorted disjoint intervals. Overlapping input counts once.
#pragma once

#include <cstdint>
#include <vector>

namespace weft::trace {

// [begin, end)
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool operator==(const Interval&) const = default;
};

using Intervals = std::vector<Interval>;

// Union of intervals in any order; empty intervals cover nothing.
Intervals unite(Intervals some);
// Difference of two sets: in `from`, not in `taken`.
Intervals subtract(const Intervals& from, const Intervals& taken);
// Intersection of two sets.
Intervals shared(const Intervals& of, const Intervals& inside);
std::int64_t length(const Intervals& set);

}  // namespace weft::trace
