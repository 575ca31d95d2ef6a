#include "weft/base/slice.h"

#include <algorithm>

#include "weft/base/check.h"

namespace weft::base {
namespace {

std::int64_t total(const std::vector<Range>& ranges) {
  std::int64_t sum = 0;
  for (const Range& range : ranges) sum += range.count;
  return sum;
}

// Walks a part dim by dim; records the runs inside both the slice and a range of the global tensor.
class Walker {
 public:
  Walker(const Slice& slice, const Range& wanted) : slice_(slice), wanted_(wanted) {
    const int rank = slice.global.rank();
    const Shape part = slice.part();
    inner_.assign(static_cast<std::size_t>(rank), 1);
    part_inner_ = inner_;
    for (int dim = rank - 2; dim >= 0; --dim) {
      inner_[at(dim)] = inner_[at(dim + 1)] * slice.global[dim + 1];
      part_inner_[at(dim)] = part_inner_[at(dim + 1)] * part[dim + 1];
    }
    // Inner dims from here on are complete in the part.
    whole_from_ = rank;
    while (whole_from_ > 0 &&
           total(slice.dims[at(whole_from_ - 1)]) == slice.global[whole_from_ - 1]) {
      --whole_from_;
    }
  }

  std::vector<Run> walk() {
    walk(0, 0);
    return std::move(runs_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void walk(int dim, std::int64_t global) {
    if (dim >= whole_from_) {
      const std::int64_t all =
          dim == slice_.global.rank() ? 1 : inner_[at(dim)] * slice_.global[dim];
      return add(global, all);
    }
    for (const Range& range : slice_.dims[at(dim)]) {
      const std::int64_t first = global + range.begin * inner_[at(dim)];
      if (dim + 1 >= whole_from_) {
        add(first, range.count * inner_[at(dim)]);
        continue;
      }
      for (std::int64_t i = 0; i < range.count; ++i) {
        const Range all{.begin = first + i * inner_[at(dim)], .count = inner_[at(dim)]};
        const Range part{.begin = position_, .count = part_inner_[at(dim)]};
        if (common(all, wanted_).count == 0 || common(part, slice_.elements).count == 0) {
          position_ = part.end();
        } else {
          walk(dim + 1, all.begin);
        }
      }
    }
  }

  // Adds the next `count` elements of the part.
  void add(std::int64_t global, std::int64_t count) {
    const std::int64_t to_local = position_ - global;
    const Range wanted{.begin = wanted_.begin + to_local, .count = wanted_.count};
    const Range inside =
        common(common({.begin = position_, .count = count}, slice_.elements), wanted);
    const std::int64_t first = inside.begin - to_local;
    position_ += count;
    if (inside.count == 0) return;
    const bool goes_on = !runs_.empty() && runs_.back().global + runs_.back().count == first;
    if (goes_on) {
      runs_.back().count += inside.count;
    } else {
      runs_.push_back(
          {.global = first, .local = inside.begin - slice_.elements.begin, .count = inside.count});
    }
  }

  const Slice& slice_;
  const Range wanted_;
  std::vector<std::int64_t> inner_;       // elements between indices of a dim
  std::vector<std::int64_t> part_inner_;  // elements between indices of a dim of the part
  int whole_from_ = 0;
  std::int64_t position_ = 0;  // in the part
  std::vector<Run> runs_;
};

}  // namespace

Range common(const Range& a, const Range& b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {.begin = begin, .count = std::max<std::int64_t>(0, std::min(a.end(), b.end()) - begin)};
}

Shape Slice::part() const {
  std::vector<std::int64_t> counts;
  for (const std::vector<Range>& ranges : dims) counts.push_back(total(ranges));
  return Shape(counts);
}

Slice whole_slice(const Shape& global) {
  std::vector<std::vector<Range>> dims;
  for (const std::int64_t count : global.dims()) dims.push_back({{.begin = 0, .count = count}});
  return slice_of(global, std::move(dims));
}

Slice slice_of(const Shape& global, std::vector<std::vector<Range>> dims) {
  CHECK(std::ssize(dims) == global.rank(), "{} dims of {}", dims.size(), global.print());
  for (int dim = 0; dim < global.rank(); ++dim) {
    std::int64_t end = 0;
    for (const Range& range : dims[static_cast<std::size_t>(dim)]) {
      CHECK(range.begin >= end && range.count >= 0 && range.end() <= global[dim],
            "elements [{}, {}) of dim {} of {}",
            range.begin,
            range.end(),
            dim,
            global.print());
      end = range.end();
    }
  }
  Slice slice{.global = global, .dims = std::move(dims), .elements = {}};
  slice.elements.count = slice.part().elements();
  return slice;
}

std::vector<Run> runs_of(const Slice& slice) {
  return runs_in(slice, {.begin = 0, .count = slice.global.elements()});
}

std::vector<Run> runs_in(const Slice& slice, const Range& global) {
  return Walker(slice, global).walk();
}

}  // namespace weft::base
