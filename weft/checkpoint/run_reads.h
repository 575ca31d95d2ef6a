// Runs of a stored tensor in few reads. Of columns of a matrix every row is a run: a file is not
// read a few bytes at a time, and not where nobody wants anything.
#pragma once

#include <functional>
#include <span>

#include "weft/tensor/slice.h"

namespace weft::checkpoint {

// Fills `out` with the elements from `begin` on.
using ReadRange = std::function<void(std::int64_t begin, std::span<float> out)>;

// The runs of one range of a slice, ascending, into `out`, one behind the other. What lies between
// two of them is read with them where that is less than another read costs.
void read_runs(std::span<const tensor::Run> runs, std::span<float> out, const ReadRange& read);

}  // namespace weft::checkpoint
