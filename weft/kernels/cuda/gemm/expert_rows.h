// Rows of each expert, found on the GPU: the host knows no counts.
#pragma once

#include <cstdint>

#include "weft/kernels/cuda/device/arguments.h"

namespace weft::kernels::cuda {

// Order of the experts: by their numbers, or by their counts, the largest first.
enum class ExpertOrder { ByNumber, ByCount };

// Division of an expert's rows into cuts of `rows` rows; the last one may have fewer. Two cuts make
// `of_two` tiles, and a last one without a partner makes `of_one`.
struct RowCut {
  std::int64_t rows = 1;
  std::int64_t of_two = 2, of_one = 1;
  ExpertOrder order = ExpertOrder::ByNumber;
};

// Rows [first_row[e], first_row[e + 1]) belong to expert e. So do the tiles [first_tile[e],
// first_tile[e + 1]), counted over all experts. All are zero if the counts do not fit.
struct ExpertRows {
  std::int64_t experts = 0;
  std::int64_t room = 0;  // for the rows of all experts
  RowCut cut;
  std::int64_t* first_row = nullptr;   // (experts + 1)
  std::int64_t* first_tile = nullptr;  // (experts + 1)
  std::int64_t* by_count = nullptr;    // (experts): most rows first; ByCount only

  // Upper bound of the cuts of counts that fit.
  std::int64_t most_cuts() const {
    if (experts == 0) return 0;
    const std::int64_t partial = experts < room ? experts : room;
    return (room + (cut.rows - 1) * partial) / cut.rows;
  }
  // Expert of a tile that exists.
  __device__ std::int64_t expert_of(std::int64_t tile) const {
    std::int64_t expert = 0, behind = experts;
    while (behind - expert > 1) {
      const std::int64_t middle = (expert + behind) / 2;
      (first_tile[middle] <= tile ? expert : behind) = middle;
    }
    return expert;
  }
};

// Makes it in the stream's scratch memory: the work that uses it has no other.
ExpertRows expert_rows(Stream& stream, std::int64_t experts, std::int64_t room, const RowCut& cut);

// Fills it from `counts` (experts). Raises a fault for the first count that is negative or larger
// than the remaining room.
void launch_find_rows(cudaStream_t stream,
                      const ExpertRows& rows,
                      const std::int64_t* counts,
                      const Faults& faults);

}  // namespace weft::kernels::cuda
