// Elements of a global tensor that a rank holds: pure shape arithmetic.
//
// A rank holds some ranges of every dim. A dim cut in blocks gives one range. A dim whose runs are
// cut separately, such as gate rows and up-projection rows, gives several. The elements in all of
// them, in row-major order, are the rank's part; a slice is a range of the part. This describes a
// slice of any dim, and also an optimizer shard that ignores parameter boundaries.
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

// Intersection of two ranges; may be empty.
Range common(const Range& a, const Range& b);

struct Slice {
  Shape global;
  std::vector<std::vector<Range>> dims;  // ranges of each dim of the global tensor, ascending
  Range elements;                        // range of the part, in row-major order

  Shape part() const;  // shape of the part
  bool operator==(const Slice&) const = default;
};

// Whole tensor; part with the given ranges of each dim.
Slice whole_slice(const Shape& global);
Slice slice_of(const Shape& global, std::vector<std::vector<Range>> dims);

// Elements that are contiguous in the global tensor and in the slice.
struct Run {
  // index of the first; local: counted from the slice's first element
  std::int64_t global = 0, local = 0;
  std::int64_t count = 0;

  bool operator==(const Run&) const = default;
};

// Runs of a slice, as few as possible, ascending by place in the slice.
std::vector<Run> runs_of(const Slice& slice);
// Runs within a range of the global tensor; they form one range of the slice. Other parts are
// skipped, so a long slice can be processed range by range.
std::vector<Run> runs_in(const Slice& slice, const Range& global);

}  // namespace weft::base
