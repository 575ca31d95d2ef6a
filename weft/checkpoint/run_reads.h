// Few large reads for many runs of a stored tensor. For columns of a matrix each row is a run; tiny
// separate reads would be slow.
#pragma once

#include <functional>
#include <span>

#include "weft/tensor/slice.h"

namespace weft::checkpoint {

// Fills `out` with the elements from `begin` on.
using ReadRange = std::function<void(std::int64_t begin, std::span<float> out)>;

// Reads ascending runs of one range of a slice into `out`, back to back. A gap between two runs is
// read along if that is cheaper than another read.
void read_runs(std::span<const tensor::Run> runs, std::span<float> out, const ReadRange& read);

}  // namespace weft::checkpoint
