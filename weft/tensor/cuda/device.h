// GPU device: its memory, pinned host memory, and CUDA streams.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "weft/tensor/cuda/call.h"
#include "weft/tensor/device.h"

namespace weft::tensor::cuda {

class CudaDevice final : public Device {
 public:
  // Uses GPU `local_rank` modulo the number of GPUs. Throws SystemError if there is no GPU, or if
  // this build has no kernels for it.
  CudaDevice(const kernels::Operations& operations, int local_rank, Deterministic deterministic);

  std::string_view name() const override { return "cuda"; }
  std::unique_ptr<Stream> make_stream(std::string name, StreamRole role) override;
  std::byte* take(Memory memory, std::size_t bytes) override;
  void give_back(Memory memory, std::byte* data, std::size_t bytes) override;
  std::unique_ptr<Region> make_region(Memory memory) override;

  int ordinal() const { return ordinal_; }
  Deterministic deterministic() const { return deterministic_; }
  // Makes this GPU current for the calling thread.
  void use() const { check("cudaSetDevice", cudaSetDevice(ordinal_)); }
  // Throws SystemError with `bytes` and the free memory.
  [[noreturn]] void throw_no_memory(std::size_t bytes) const;

 private:
  const int ordinal_;
  const Deterministic deterministic_;
};

}  // namespace weft::tensor::cuda
