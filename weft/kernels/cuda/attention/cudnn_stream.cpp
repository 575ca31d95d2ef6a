#include "weft/kernels/cuda/attention/cudnn_stream.h"

namespace weft::kernels::cuda {

CudnnStream::CudnnStream(cudaStream_t stream) {
  cudnnHandle_t handle = nullptr;
  check("cudnnCreate", "", cudnn().create(&handle));
  handle_.reset(handle);
  check("cudnnSetStream", "", cudnn().set_stream(handle, stream));
}

const Plan* CudnnStream::plan_for(const AttentionGraphShape& shape) {
  auto found = plans_.find(shape);
  if (found == plans_.end()) {
    const std::lock_guard lock(mutex_);
    found =
        plans_
            .emplace(shape, Plan::make(handle_.get(), attention_graph(shape), shape.deterministic))
            .first;
  }
  return found->second ? &*found->second : nullptr;
}

void CudnnStream::run(const Plan& plan, std::span<const Bound> bound, std::byte* workspace) {
  const std::lock_guard lock(mutex_);
  plan.run(handle_.get(), bound, workspace);
}

}  // namespace weft::kernels::cuda
