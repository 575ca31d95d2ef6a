// Dense parameters that several tensor-parallel ranks hold: norms, routers, latent attention's
// compression, and key/value heads if they are fewer than ranks. Each rank has a part of their
// gradients, so gradients are summed over the ranks with copies. One of these ranks counts them in
// the gradient norm.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/model/parameters.h"

namespace weft::model {

// Range of the dense buffers.
struct CopiedRange {
  tensor::Range elements;
  // Number of different parts in the group; 1: all ranks hold the same. Copies of a part are on
  // neighbouring ranks.
  std::int64_t parts = 1;

  bool operator==(const CopiedRange&) const = default;
};

// Ascending; adjacent ranges with equally many parts are joined. Empty if tp = 1.
std::vector<CopiedRange> copied_ranges(const Parameters& parameters, std::int64_t tp);

// Copied ranges within these runs of the buffers.
std::vector<CopiedRange> within(const std::vector<CopiedRange>& copied,
                                const std::vector<tensor::Range>& runs);

// True if a tensor-parallel rank is the first holder of its part.
bool is_first_holder(std::int64_t parts, std::int64_t tp, std::int64_t tp_rank);

// Parts of the dense runs that count in this rank's norm.
std::vector<tensor::Range> counted_ranges(const std::vector<tensor::Range>& runs,
                                          const std::vector<CopiedRange>& copied,
                                          std::int64_t tp,
                                          std::int64_t tp_rank);

}  // namespace weft::model
