// The message that this rank's receives return.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "weft/tensor/transfers.h"

namespace weft::comm::loopback {

// Host copy of the first message that the rank sends to any peer. The choice does not depend on
// timing: a receive issued after a send waits for the message.
class Mail {
 public:
  explicit Mail(double timeout_seconds) : timeout_seconds_(timeout_seconds) {}

  // For the thread that issues operations.
  void announce();         // announces a send that is about to be issued
  bool must_wait() const;  // true if a send was announced and its message has not arrived

  // For a stream's thread. SystemError if the rank fails first or the message misses the timeout.
  void wait();
  // False if another message is already kept; the caller then sends this one elsewhere.
  bool keep(tensor::Transfers& transfers, std::span<const std::byte> message);
  // Empty before the first message.
  std::span<const std::byte> kept() const;

  void fail();  // ends the wait

 private:
  const double timeout_seconds_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_announced_ = false, is_taken_ = false, has_come_ = false, has_failed_ = false;
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace weft::comm::loopback
