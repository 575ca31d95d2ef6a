// Pinned memory between the card and memory of the host that is not pinned: a copy of the latter
// would hold up the thread that enqueues it.
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

  // A piece of at least so many bytes, in use until the stream has passed `ticket`.
  std::byte* take(std::int64_t bytes, std::uint64_t ticket);
  // As take; its first bytes are copied to `to` when the stream has passed it.
  std::byte* take_for(std::byte* to, std::int64_t bytes, std::uint64_t ticket);
  // The stream has passed `ticket`, and the host waits for it: copies what belongs to the host.
  void pass(std::uint64_t ticket);

 private:
  struct Piece {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Lent {
    std::uint64_t ticket = 0;
    Piece piece;
    std::byte* to = nullptr;  // null: an upload
    std::int64_t bytes = 0;
  };

  CudaDevice& device_;
  std::multimap<std::size_t, std::byte*> free_;
  std::deque<Lent> lent_;  // in order of tickets
};

}  // namespace weft::tensor::cuda
