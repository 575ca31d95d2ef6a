// Interface of a stream for files that nvcc compiles. It includes no threads, maps or functions of
// the standard library, which nvcc would parse twice: for the host and for the GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weft/tensor/work.h"

namespace weft::tensor {
class Stream;
struct FaultWord;
}  // namespace weft::tensor

namespace weft::tensor::cuda {

// Fault word of a kernel's stream (kernels/cuda/device/arguments.h).
struct FaultPlace {
  FaultWord* word = nullptr;
  std::uint64_t ticket = 0;
};

// Workspace that the libraries want on Hopper. Each stream has its own, so that results do not
// depend on work of other streams.
inline constexpr std::int64_t kWorkspaceBytes = 32 << 20;

// One piece of work: the call operator issues it to a CUDA stream.
class Launch {
 public:
  virtual ~Launch() = default;
  virtual void operator()(cudaStream_t handle) const = 0;
  // Copy for a stream that issues the work later.
  virtual std::unique_ptr<const Launch> kept() const = 0;
};

template <typename Body>
class LaunchOf final : public Launch {
 public:
  explicit LaunchOf(const Body& body) : body_(body) {}
  void operator()(cudaStream_t handle) const override { body_(handle); }
  std::unique_ptr<const Launch> kept() const override {
    return std::unique_ptr<const Launch>(new LaunchOf(body_));
  }

 private:
  Body body_;
};

// CudaStream's functions; CHECKs that the stream is one.
void enqueue(Stream& stream,
             std::string_view name,
             WorkClass kind,
             const Launch& launch,
             const WorkSize& size = {});
FaultPlace fault_place(Stream& stream);
std::byte* workspace(Stream& stream, std::int64_t bytes);
int ordinal_of(Stream& stream);

}  // namespace weft::tensor::cuda
