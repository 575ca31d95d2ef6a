// Tiling of attention, forward and backward: blocks of queries against chunks of keys.
//
// A block of kQueries rows of one head meets the keys that its last row sees, kKeys at a time. The
// products read the strided rows in place; only corner tiles compute masked scores. Tasks take
// scratch memory from a fixed number of slots of the workspace.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weft/kernels/cpu/arguments.h"
#include "weft/kernels/cpu/gemm/blas.h"
#include "weft/kernels/cpu/gemm/work_cut.h"
#include "weft/kernels/kernels.h"

namespace weft::kernels::cpu {

inline constexpr std::int64_t kQueries = 64;
inline constexpr std::int64_t kKeys = 512;
inline constexpr std::int64_t kSlots = 32;

struct AttentionSizes {
  std::int64_t batch, heads, groups;
  SequenceRows queries, keys;
  AttentionMask mask;
  std::int64_t width, value_width;  // query or key head; value head
  float scale;

  std::int64_t heads_per_group() const { return heads / groups; }
  std::int64_t query_blocks() const { return (queries.count + kQueries - 1) / kQueries; }
  std::int64_t key_chunk() const { return std::min(keys.count, kKeys); }
  std::int64_t first_query(std::int64_t b) const { return b * queries.each + queries.begin; }
  std::int64_t first_key(std::int64_t b) const { return b * keys.each + keys.begin; }
  // Number of keys that a query sees, from the first key on.
  std::int64_t seen_by(std::int64_t query) const {
    return mask == AttentionMask::None ? keys.count : query + 1 + keys.count - queries.count;
  }
  // Number of keys of a chunk that a query sees.
  std::int64_t visible(std::int64_t query, const Range& chunk) const {
    return std::clamp<std::int64_t>(seen_by(query) - chunk.begin, 0, chunk.size());
  }
};

// Sizes of a call with `tokens` rows.
AttentionSizes attention_sizes(std::int64_t tokens, const AttentionShape& shape);

// Workspace of a call, in floats.
std::int64_t forward_workspace(const AttentionSizes& sizes);
struct DgradWorkspace {
  std::int64_t slots = 0, partial = 0;
};
DgradWorkspace dgrad_workspace(const AttentionSizes& sizes);

// Bump allocator over one slot's memory.
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

}  // namespace weft::kernels::cpu
