// What passes through the host on its way between a device and MPI.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/comm/transport.h"

namespace weft::comm::mpi {

// The parts of a meeting with memory that MPI reaches: the tensors' own where the host reaches
// them, else copies on the host.
class Staging {
 public:
  // Takes what goes out.
  Staging(const Membership& group, std::span<const Part> parts, tensor::Transfers& transfers);

  std::span<const Part> parts() const { return staged_; }
  // Must live as long as MPI may write to it.
  std::shared_ptr<void> memory() const { return memory_; }
  // Hands over what came in, once it is here.
  void deliver();

 private:
  std::span<const Part> parts_;
  tensor::Transfers& transfers_;
  std::vector<Part> staged_;
  using Memory = std::vector<std::unique_ptr<std::byte[]>>;
  std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
};

}  // namespace weft::comm::mpi
