// What the two directions of attention share: blocks of queries against chunks of keys.
//
// A block of kQueries rows of one head meets the keys up to its own end, kKeys at a time, by matrix
// products on the strided rows in place; above the diagonal nothing is computed but the corner of
// the last block. Tasks take their scratch from a fixed number of slots of the workspace.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/blas.h"
#include "weft/kernels/cpu/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels::cpu {

inline constexpr std::int64_t kQueries = 64;
inline constexpr std::int64_t kKeys = 512;
inline constexpr std::int64_t kSlots = 32;
static_assert(kKeys % kQueries == 0, "a chunk of keys starts at or before every block it meets");

struct AttentionSizes {
  std::int64_t batch, sequence, heads, groups;
  std::int64_t width, value_width;  // of a query or key head, of a value head
  float scale;

  std::int64_t heads_per_group() const { return heads / groups; }
  std::int64_t query_blocks() const { return (sequence + kQueries - 1) / kQueries; }
  std::int64_t key_chunk() const { return std::min(sequence, kKeys); }
};

// Of a call with `tokens` rows.
AttentionSizes attention_sizes(std::int64_t tokens, const AttentionShape& shape);

// What a call takes from its pool, in floats.
std::int64_t forward_workspace(const AttentionSizes& sizes);
struct DgradWorkspace {
  std::int64_t slots = 0, partial = 0;
};
DgradWorkspace dgrad_workspace(const AttentionSizes& sizes);

// Memory of one slot, handed out in pieces.
class SlotMemory {
 public:
  explicit SlotMemory(float* at) : at_(at) {}
  float* take(std::int64_t elements) {
    float* piece = at_;
    at_ += elements;
    return piece;
  }

 private:
  float* at_;
};

// Rows of one head as fp32: in place, or converted into `scratch`.
inline Factor fp32_rows(const float* x,
                        std::int64_t stride,
                        std::int64_t /*rows*/,
                        std::int64_t /*width*/,
                        float* /*scratch*/) {
  return {x, stride, Transpose::No};
}
inline Factor fp32_rows(const BFloat16* x,
                        std::int64_t stride,
                        std::int64_t rows,
                        std::int64_t width,
                        float* scratch) {
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) scratch[r * width + c] = load(x[r * stride + c]);
  }
  return {scratch, width, Transpose::No};
}

inline Factor transposed(Factor x) {
  x.transpose = Transpose::Yes;
  return x;
}

// Keys of the chunk that query row i of a block may see.
inline std::int64_t visible(std::int64_t query, const Range& keys) {
  return std::min(keys.size(), query + 1 - keys.begin);
}

}  // namespace weft::kernels::cpu
