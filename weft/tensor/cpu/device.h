// CPU device: memory of the process, streams served by threads.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "weft/tensor/device.h"

namespace weft::tensor {
class Transfers;
}

namespace weft::tensor::cpu {

class CpuDevice : public Device {
 public:
  // `threads`: compute threads for each compute stream.
  CpuDevice(const kernels::Operations& operations, int threads);

  std::string_view name() const override { return "cpu"; }
  bool is_the_host() const override { return true; }
  std::unique_ptr<Stream> make_stream(std::string name, StreamRole role) override;
  std::byte* take(Memory memory, std::size_t bytes) override;
  void give_back(Memory memory, std::byte* data, std::size_t bytes) override;
  std::unique_ptr<Region> make_region(Memory memory) override;
  // Transfers for one stream of this device.
  virtual std::unique_ptr<Transfers> make_transfers();

  // Address at which the cores reach device memory; all code that touches device memory calls this.
  // Identity, except on a device that hides its memory from the host.
  template <typename T>
  T* reach(T* memory) const {
    const auto place = reinterpret_cast<std::uintptr_t>(memory) - window_.begin;
    return place < window_.bytes ? reinterpret_cast<T*>(window_.mapped + place) : memory;
  }

  // True if host code cannot reach device memory at its address.
  bool hides_memory() const { return window_.bytes > 0; }

 protected:
  // Addresses [begin, begin + bytes) are handed out; their memory is mapped at `mapped`.
  struct Window {
    std::uintptr_t begin = 0, bytes = 0, mapped = 0;
  };
  CpuDevice(const kernels::Operations& operations, int threads, const Window& window);

 private:
  const int threads_;
  const Window window_;
};

}  // namespace weft::tensor::cpu
