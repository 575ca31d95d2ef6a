// Facts about cuDNN's attention that need no GPU: supported calls, how a backward is split into
// launches, and the memory it takes.
//
// The deterministic backward keeps the gradients of all scores of a launch. Each launch therefore
// covers some of the sequences, or some heads of one sequence, so that its workspace is bounded.
// Heads are independent of each other: the split changes no bit.
#pragma once

#include <cstdint>

#include "weft/kernels/kernels.h"
#include "weft/tensor/device.h"

namespace weft::kernels {

struct CudnnShape {
  tensor::DType dtype = tensor::DType::F32;
  std::int64_t batch = 0, sequence = 0, heads = 0, groups = 0;
  std::int64_t width = 0, value_width = 0;
  bool is_whole = true;  // true: every row of a sequence attends to the rows before it

  std::int64_t heads_per_group() const { return heads / groups; }
};
CudnnShape cudnn_shape(const Tensor& q_TQ, const AttentionShape& shape);

// True if cuDNN has an engine for this call, judged by its shapes.
bool suits_cudnn(const CudnnShape& shape);

// Extent of one launch: whole sequences, or some groups of one sequence.
struct CudnnPart {
  std::int64_t sequences = 0, groups = 0;
};
CudnnPart cudnn_part(const CudnnShape& shape, tensor::Deterministic deterministic);

// Layout of the workspace: pieces one behind the other, in bytes.
struct CudnnMemory {
  std::int64_t library = 0;  // the library's own workspace
  std::int64_t delta = 0, dq_sums = 0, lse = 0;

  std::int64_t delta_at() const { return apart(library); }
  std::int64_t dq_sums_at() const { return delta_at() + apart(delta); }
  std::int64_t lse_at() const { return dq_sums_at() + apart(dq_sums); }
  std::int64_t total() const { return lse_at() + apart(lse); }

 private:
  static std::int64_t apart(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }
};
// Workspace of a backward; `library`: bytes that cuDNN reports. That part is rounded up to whole
// MiB, so that the total is known before cuDNN reports it.
enum class LseOrder { BySequence, AsItLies };  // lse copied into sequence order, or read in place
CudnnMemory cudnn_memory(const CudnnShape& shape,
                         const CudnnPart& part,
                         tensor::Deterministic deterministic,
                         LseOrder order,
                         std::int64_t library);
// Workspace of a forward of any shape: negligible.
inline constexpr std::int64_t kCudnnForwardBytes = 256;
// Estimate of the workspace that cuDNN will report for a backward, close enough for cudnn_memory.
std::int64_t expected_library_bytes(const CudnnShape& shape,
                                    const CudnnPart& part,
                                    tensor::Deterministic deterministic);

}  // namespace weft::kernels
