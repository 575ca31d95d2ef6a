// What of a rank's dense parameters other tensor-parallel ranks hold as well: norms, routers, what
// latent attention compresses, and key and value heads that are fewer than the ranks. Each rank has
// its own part of their gradients, so that they are summed over the ranks with copies; in the norm
// of all gradients one of these counts them.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/model/parameters.h"

namespace weft::model {

// A run of the dense buffers.
struct CopiedRange {
  tensor::Range elements;
  // The ranks of the group hold so many different parts: 1 where all hold the same. The copies of a
  // part are on neighbours.
  std::int64_t parts = 1;

  bool operator==(const CopiedRange&) const = default;
};

// Ascending; neighbours with as many copies are one. None where tp = 1.
std::vector<CopiedRange> copied_ranges(const Parameters& parameters, std::int64_t tp);

// Of them, what lies in these runs of the buffers.
std::vector<CopiedRange> within(const std::vector<CopiedRange>& copied,
                                const std::vector<tensor::Range>& runs);

// Whether a tensor-parallel rank is the first that holds a part.
bool is_first_holder(std::int64_t parts, std::int64_t tp, std::int64_t tp_rank);

// What of these runs of the dense buffers counts in this rank's norm.
std::vector<tensor::Range> counted_ranges(const std::vector<tensor::Range>& runs,
                                          const std::vector<CopiedRange>& copied,
                                          std::int64_t tp,
                                          std::int64_t tp_rank);

}  // namespace weft::model
