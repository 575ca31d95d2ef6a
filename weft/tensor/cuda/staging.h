// Pinned staging memory for copies between the GPU and pageable host memory. A direct copy of
// pageable memory would block the enqueuing thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "weft/tensor/cuda/device.h"

namespace weft::tensor::cuda {

class Staging {
 public:
  explicit Staging(CudaDevice& device) : device_(device) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Piece of at least `bytes`, in use until the stream has passed `ticket`.
  std::byte* take(std::int64_t bytes, std::uint64_t ticket);
  // As take; when the stream has passed `ticket`, its first `bytes` are copied to `to`.
  std::byte* take_for(std::byte* to, std::int64_t bytes, std::uint64_t ticket);
  // Called when the stream has passed `ticket` and the host waits for it: copies downloads to host
  // memory.
  void pass(std::uint64_t ticket);

 private:
  struct Piece {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Lent {
    std::uint64_t ticket = 0;
    Piece piece;
    std::byte* to = nullptr;  // nullptr: an upload
    std::int64_t bytes = 0;
  };

  CudaDevice& device_;
  std::multimap<std::size_t, std::byte*> free_;
  std::deque<Lent> lent_;  // in ticket order
};

}  // namespace weft::tensor::cuda
