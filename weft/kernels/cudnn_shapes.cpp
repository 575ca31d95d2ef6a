#include "weft/kernels/cudnn_shapes.h"

#include <algorithm>

#include "weft/tensor/device.h"

namespace weft::kernels {
namespace {

using tensor::Deterministic;

// cuDNN up to 9.15.0 may touch memory behind the last keys if they do not fill a tile.
constexpr std::int64_t kCudnnTile = 128;
constexpr std::int64_t kWidestHead = 256;
constexpr std::int64_t kMostWorkspace = std::int64_t{5} << 28;  // 1.25 GiB
constexpr std::int64_t kLibraryStep = std::int64_t{1} << 20;
constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

bool is_head_width(std::int64_t width) { return width % 8 == 0 && width <= kWidestHead; }

std::int64_t largest_divisor(std::int64_t of, std::int64_t at_most) {
  std::int64_t divisor = std::clamp<std::int64_t>(at_most, 1, of);
  while (of % divisor != 0) --divisor;
  return divisor;
}

// Gradients of keys and values of one query head of a sequence, before heads are summed.
std::int64_t unsummed_bytes(const CudnnShape& shape) {
  return shape.heads == shape.groups ? 0 : 2 * shape.sequence * (shape.width + shape.value_width);
}

std::int64_t score_bytes(const CudnnShape& shape) { return 2 * shape.sequence * shape.sequence; }

std::int64_t dq_sum_bytes(const CudnnShape& shape) {
  return kFloatBytes * shape.sequence * shape.width;
}

std::int64_t heads_of(const CudnnShape& shape, const CudnnPart& part) {
  return part.sequences * part.groups * shape.heads_per_group();
}

}  // namespace

CudnnShape cudnn_shape(const Tensor& q, const AttentionShape& shape) {
  return {.dtype = q.dtype(),
          .batch = q.dim(0) / shape.query_rows().each,
          .sequence = shape.sequence,
          .heads = shape.heads,
          .groups = shape.groups,
          .width = shape.head_width,
          .value_width = shape.value_width.value_or(shape.head_width),
          .is_whole = shape.is_whole()};
}

bool suits_cudnn(const CudnnShape& shape) {
  return shape.is_whole && shape.dtype == tensor::DType::BF16 && shape.batch > 0 &&
         shape.sequence % kCudnnTile == 0 && is_head_width(shape.width) &&
         is_head_width(shape.value_width);
}

// A part covers at least the heads of one group: their gradients are summed into the same keys.
CudnnPart cudnn_part(const CudnnShape& shape, Deterministic deterministic) {
  const std::int64_t kept =
      deterministic == Deterministic::Yes ? score_bytes(shape) : dq_sum_bytes(shape);
  const std::int64_t most_groups =
      kMostWorkspace / (shape.heads_per_group() * (kept + unsummed_bytes(shape)));
  if (most_groups < shape.groups) return {1, largest_divisor(shape.groups, most_groups)};
  return {largest_divisor(shape.batch, most_groups / shape.groups), shape.groups};
}

CudnnMemory cudnn_memory(const CudnnShape& shape,
                         const CudnnPart& part,
                         Deterministic deterministic,
                         LseOrder order,
                         std::int64_t library) {
  const std::int64_t heads = heads_of(shape, part);
  const bool copies = order == LseOrder::BySequence;
  return {.library = (library + kLibraryStep - 1) / kLibraryStep * kLibraryStep,
          .delta = heads * shape.sequence * kFloatBytes,
          .dq_sums = deterministic == Deterministic::No ? heads * dq_sum_bytes(shape) : 0,
          .lse = copies ? shape.batch * shape.heads * shape.sequence * kFloatBytes : 0};
}

std::int64_t expected_library_bytes(const CudnnShape& shape,
                                    const CudnnPart& part,
                                    Deterministic deterministic) {
  const std::int64_t kept = deterministic == Deterministic::Yes ? score_bytes(shape) : 0;
  return heads_of(shape, part) * (kept + unsummed_bytes(shape)) + 1;
}

}  // namespace weft::kernels
