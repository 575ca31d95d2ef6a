// Sets of time: sorted intervals that do not touch. What overlaps is counted once.
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

// The set that some intervals in any order cover; empty ones cover nothing.
Intervals unite(Intervals some);
// What is in `from` and not in `taken`; both are sets.
Intervals subtract(const Intervals& from, const Intervals& taken);
// What is in both sets.
Intervals shared(const Intervals& of, const Intervals& inside);
std::int64_t length(const Intervals& set);

}  // namespace weft::trace
