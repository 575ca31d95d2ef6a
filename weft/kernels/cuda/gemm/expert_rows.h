// Where the rows of each expert lie, found on the GPU from counts that no host knows.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/device/arguments.h"

namespace weft::kernels::cuda {

// Whether a product goes through the experts by their numbers, or needs those with most rows first.
enum class ExpertOrder { ByNumber, ByCount };

// How the rows of an expert are cut: each `rows` of them, and the rest, are one cut; two cuts make
// `of_two` tiles, and a last one without a second makes `of_one`.
struct RowCut {
  std::int64_t rows = 1;
  std::int64_t of_two = 2, of_one = 1;
  ExpertOrder order = ExpertOrder::ByNumber;
};

// Expert e has the rows [first_row[e], first_row[e + 1]) and, counted over all experts, the tiles
// [first_tile[e], first_tile[e + 1]). All are zero where the counts do not fit.
struct ExpertRows {
  std::int64_t experts = 0;
  std::int64_t room = 0;  // for the rows of all experts
  RowCut cut;
  std::int64_t* first_row = nullptr;   // (experts + 1)
  std::int64_t* first_tile = nullptr;  // (experts + 1)
  std::int64_t* by_count = nullptr;    // (experts): the one with most rows first; if asked for

  // No counts that fit have more.
  std::int64_t most_cuts() const {
    if (experts == 0) return 0;
    const std::int64_t partial = experts < room ? experts : room;
    return (room + (cut.rows - 1) * partial) / cut.rows;
  }
  // The expert of a tile there is.
  __device__ std::int64_t expert_of(std::int64_t tile) const {
    std::int64_t expert = 0, behind = experts;
    while (behind - expert > 1) {
      const std::int64_t middle = (expert + behind) / 2;
      (first_tile[middle] <= tile ? expert : behind) = middle;
    }
    return expert;
  }
};

// In the stream's scratch memory: the work that uses it has no other.
ExpertRows expert_rows(Stream& stream, std::int64_t experts, std::int64_t room, const RowCut& cut);

// Fills it from `counts` (experts). The first count that is negative or larger than the room that
// is left is a fault.
void launch_find_rows(cudaStream_t stream,
                      const ExpertRows& rows,
                      const std::int64_t* counts,
                      const Faults& faults);

}  // namespace weft::kernels::cuda
