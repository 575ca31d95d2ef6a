// Host buffers between device memory and MPI.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/comm/transport.h"

namespace weft::comm::mpi {

// Parts of a meeting in memory that MPI can access: the tensors themselves if the host can access
// them, otherwise host copies.
class Staging {
 public:
  // Copies the outgoing bytes to the host.
  Staging(const Membership& group, std::span<const Part> parts, tensor::Transfers& transfers);

  std::span<const Part> parts() const { return staged_; }
  // Must live as long as MPI may write to it.
  std::shared_ptr<void> memory() const { return memory_; }
  // Copies the received bytes to the device; call after they have arrived.
  void deliver();

 private:
  std::span<const Part> parts_;
  tensor::Transfers& transfers_;
  std::vector<Part> staged_;
  using Memory = std::vector<std::unique_ptr<std::byte[]>>;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

}  // namespace weft::comm::mpi
