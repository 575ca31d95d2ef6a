// The CPU as a device: memory of the process, streams served by threads.
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
  // `threads` compute threads for each stream that computes.
  CpuDevice(const kernels::Operations& operations, int threads);

  std::string_view name() const override { return "cpu"; }
  bool is_the_host() const override { return true; }
  std::unique_ptr<Stream> make_stream(std::string name, StreamRole role) override;
  std::byte* take(Memory memory, std::size_t bytes) override;
  void give_back(Memory memory, std::byte* data, std::size_t bytes) override;
  std::unique_ptr<Region> make_region(Memory memory) override;
  // For a stream of this device.
  virtual std::unique_ptr<Transfers> make_transfers();

  // The bytes of `memory` as the cores reach them: all that touches device memory goes through
  // here. The same address, but for a device that keeps its memory out of the host's sight.
  template <typename T>
  T* reach(T* memory) const {
    const auto place = reinterpret_cast<std::uintptr_t>(memory) - window_.begin;
    return place < window_.bytes ? reinterpret_cast<T*>(window_.mapped + place) : memory;
  }

  // Whether the host's own code reaches device memory at its address.
  bool hides_memory() const { return window_.bytes > 0; }

 protected:
  // Addresses [begin, begin + bytes) are given out, and lie at `mapped`.
  struct Window {
    std::uintptr_t begin = 0, bytes = 0, mapped = 0;
  };
  CpuDevice(const kernels::Operations& operations, int threads, const Window& window);

 private:
  const int threads_;
  const Window window_;
};

}  // namespace weft::tensor::cpu
