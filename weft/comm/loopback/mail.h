// The message that this rank's receives bring back.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

#include "weft/tensor/transfers.h"

namespace weft::comm::loopback {

// The first message that the rank sends to any peer is kept in host memory. Which it is does not
// depend on timing: a receive that was issued behind a send waits until there is one.
class Mail {
 public:
  explicit Mail(double timeout_seconds) : timeout_seconds_(timeout_seconds) {}

  // On the thread that issues operations.
  void announce();         // a send is about to be issued
  bool must_wait() const;  // for what was announced and is not there

  // On a stream's thread. SystemError where the rank fails before there is a message, or none comes
  // in time.
  void wait();
  // False where another message is kept already: this one is the caller's to send elsewhere.
  bool keep(tensor::Transfers& transfers, std::span<const std::byte> message);
  // Empty before the first.
  std::span<const std::byte> kept() const;

  void fail();  // ends the waiting

 private:
  const double timeout_seconds_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_announced_ = false, is_taken_ = false, has_come_ = false, has_failed_ = false;
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace weft::comm::loopback
