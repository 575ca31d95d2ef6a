// State of cuDNN for a stream: a handle, and the plans that were made with it.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "weft/kernels/cuda/attention/cudnn_attention_graph.h"
#include "weft/kernels/cuda/attention/cudnn_plan.h"

namespace weft::kernels::cuda {

class CudnnStream {
 public:
  explicit CudnnStream(cudaStream_t stream);

  // nullptr: there is no engine for it. A plan is made once, which takes a while, and keeps its
  // address.
  const Plan* plan_for(const AttentionGraphShape& shape);
  void run(const Plan& plan, std::span<const Bound> bound, std::byte* workspace);

 private:
  struct DestroyHandle {
    void operator()(cudnnHandle_t handle) const { cudnn().destroy(handle); }
  };

  std::mutex
      mutex_;  // guards the handle: one thread makes plans while the stream's own may run some
  std::unique_ptr<cudnnContext, DestroyHandle> handle_;
  std::map<AttentionGraphShape, std::optional<Plan>> plans_;
};

}  // namespace weft::kernels::cuda
