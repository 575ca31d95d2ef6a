// Which elements of a global tensor a rank has: arithmetic of shapes alone.
//
// Of every dim a rank has some ranges (one where the dim is cut in blocks, several where runs of it
// are cut each on its own: the gate's rows and the up projection's). The elements that lie in all
// of them, in row-major order, are the rank's part; a slice is a range of that. So a slice of any
// dim can be said, and the share of an optimizer that cuts a buffer without regard to where
// parameters begin.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/shape.h"

namespace weft::base {

struct Range {
  std::int64_t begin = 0, count = 0;

  std::int64_t end() const { return begin + count; }
  bool operator==(const Range&) const = default;
};

// What two ranges have in common; empty where nothing.
Range common(const Range& a, const Range& b);

struct Slice {
  Shape global;
  std::vector<std::vector<Range>> dims;  // of each dim of the global tensor, ascending
  Range elements;                        // of the part, in row-major order

  Shape part() const;  // the shape of the part
  bool operator==(const Slice&) const = default;
};

// All of a tensor; the part that has these ranges of each dim.
Slice whole_slice(const Shape& global);
Slice slice_of(const Shape& global, std::vector<std::vector<Range>> dims);

// Elements that lie side by side in the global tensor and in the slice.
struct Run {
  std::int64_t global = 0, local = 0;  // the first; in the slice from its own first element on
  std::int64_t count = 0;

  bool operator==(const Run&) const = default;
};

// A slice as few runs, ascending by place in the slice.
std::vector<Run> runs_of(const Slice& slice);
// What of it lies in a range of the global tensor; that too is one range of the slice. Parts that
// lie elsewhere are passed over, so that a long slice can be taken range by range.
std::vector<Run> runs_in(const Slice& slice, const Range& global);

}  // namespace weft::base
