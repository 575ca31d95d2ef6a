// What is known of cuDNN's attention without a GPU: which calls are its, in which parts its
// backward is launched, and the memory that takes.
//
// The deterministic backward keeps the gradients of all scores of a launch, so it is launched for
// parts of the batch, or of the heads of one sequence, whose workspace is bounded. Heads do not
// depend on each other: the parts change no bit.
#pragma once

#include <cstdint>

#include "weft/kernels/kernels.h"
#include "weft/tensor/device.h"

namespace weft::kernels {

struct CudnnShape {
  tensor::DType dtype = tensor::DType::F32;
  std::int64_t batch = 0, sequence = 0, heads = 0, groups = 0;
  std::int64_t width = 0, value_width = 0;
  bool is_whole = true;  // all rows of a sequence meet each other

  std::int64_t heads_per_group() const { return heads / groups; }
};
CudnnShape cudnn_shape(const Tensor& q_TQ, const AttentionShape& shape);

// Whether cuDNN has an engine for such a call, as far as the shapes say.
bool suits_cudnn(const CudnnShape& shape);

// What one launch computes: whole sequences, or some of the groups of one.
struct CudnnPart {
  std::int64_t sequences = 0, groups = 0;
};
CudnnPart cudnn_part(const CudnnShape& shape, tensor::Deterministic deterministic);

// Pieces of one workspace, one behind the other, in bytes.
struct CudnnMemory {
  std::int64_t library = 0;  // what the library asks for
  std::int64_t delta = 0, dq_sums = 0, lse = 0;

  std::int64_t delta_at() const { return apart(library); }
  std::int64_t dq_sums_at() const { return delta_at() + apart(delta); }
  std::int64_t lse_at() const { return dq_sums_at() + apart(dq_sums); }
  std::int64_t total() const { return lse_at() + apart(lse); }

 private:
  static std::int64_t apart(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }
};
// Of a backward, `library` being what the library says: as much is taken in whole MiB, which can be
// told before it says.
enum class LseOrder { BySequence, AsItLies };  // copied into order, or not
CudnnMemory cudnn_memory(const CudnnShape& shape,
                         const CudnnPart& part,
                         tensor::Deterministic deterministic,
                         LseOrder order,
                         std::int64_t library);
// What its forward takes, of any shape: as good as nothing.
inline constexpr std::int64_t kCudnnForwardBytes = 256;
// What the library will say of a backward, near enough for cudnn_memory: a little more than what it
// keeps for the part.
std::int64_t expected_library_bytes(const CudnnShape& shape,
                                    const CudnnPart& part,
                                    tensor::Deterministic deterministic);

}  // namespace weft::kernels
