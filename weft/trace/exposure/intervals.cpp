#include "weft/trace/exposure/intervals.h"

#include <algorithm>

namespace weft::trace {

Intervals unite(Intervals some) {
  std::erase_if(some, [](const Interval& one) { return one.begin >= one.end; });
  std::ranges::sort(some, {}, &Interval::begin);
  Intervals set;
  for (const Interval& one : some) {
    if (!set.empty() && one.begin <= set.back().end) {
      set.back().end = std::max(set.back().end, one.end);
    } else {
      set.push_back(one);
    }
  }
  return set;
}

Intervals subtract(const Intervals& from, const Intervals& taken) {
  Intervals left;
  auto next = taken.begin();
  for (Interval rest : from) {
    while (next != taken.end() && next->end <= rest.begin) ++next;
    // The last interval cut from this one may reach into the next.
    for (auto cut = next; cut != taken.end() && cut->begin < rest.end; ++cut) {
      if (cut->begin > rest.begin) left.push_back({rest.begin, cut->begin});
      rest.begin = std::min(rest.end, cut->end);
    }
    if (rest.begin < rest.end) left.push_back(rest);
  }
  return left;
}

Intervals shared(const Intervals& of, const Intervals& inside) {
  return subtract(of, subtract(of, inside));
}

std::int64_t length(const Intervals& set) {
  std::int64_t sum = 0;
  for (const Interval& one : set) sum += one.end - one.begin;
  return sum;
}

}  // namespace weft::trace
