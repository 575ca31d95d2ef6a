// A GPU as a device: its memory, pinned host memory, and CUDA streams.
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
  // The card whose number is `local_rank` modulo how many there are. SystemError where there is
  // none, or it has no kernels in this build.
  CudaDevice(const kernels::Operations& operations, int local_rank, Deterministic deterministic);

  std::string_view name() const override { return "cuda"; }
  std::unique_ptr<Stream> make_stream(std::string name, StreamRole role) override;
  std::byte* take(Memory memory, std::size_t bytes) override;
  void give_back(Memory memory, std::byte* data, std::size_t bytes) override;
  std::unique_ptr<Region> make_region(Memory memory) override;

  int ordinal() const { return ordinal_; }
  Deterministic deterministic() const { return deterministic_; }
  // Calls of the calling thread are for this card from now on.
  void use() const { check("cudaSetDevice", cudaSetDevice(ordinal_)); }
  // SystemError: so much more is not there, and how much is.
  [[noreturn]] void throw_no_memory(std::size_t bytes) const;

 private:
  const int ordinal_;
  const Deterministic deterministic_;
};

}  // namespace weft::tensor::cuda
