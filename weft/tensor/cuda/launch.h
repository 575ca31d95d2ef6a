// What the files that nvcc compiles need of a stream, without what a stream is made of: threads,
// maps and functions of the standard library, which nvcc reads for the host and again for the card.
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

// Where a kernel says what is wrong with its data (kernels/cuda/arguments.h).
struct FaultPlace {
  FaultWord* word = nullptr;
  std::uint64_t ticket = 0;
};

// What the libraries ask for on Hopper; each stream has its own, so that results do not depend on
// what runs beside it.
inline constexpr std::int64_t kWorkspaceBytes = 32 << 20;

// One piece of work: what it hands to the CUDA stream it is given.
class Launch {
 public:
  virtual ~Launch() = default;
  virtual void operator()(cudaStream_t handle) const = 0;
  // A copy, for a stream that issues it later.
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

// These are CudaStream's of a stream that must be one.
void enqueue(Stream& stream,
             std::string_view name,
             WorkClass kind,
             const Launch& launch,
             const WorkSize& size = {});
FaultPlace fault_place(Stream& stream);
std::byte* workspace(Stream& stream, std::int64_t bytes);
int ordinal_of(Stream& stream);

}  // namespace weft::tensor::cuda
