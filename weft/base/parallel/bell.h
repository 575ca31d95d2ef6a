// Counter that threads wait on.
//
// For threads of different priority on one core, this serves better than the standard library.
// Signalling a condition variable may wait until threads signalled earlier have run.
// std::atomic::wait yields the core before it sleeps, and the scheduler then delays the thread's
// next turn.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::base {

class Bell {
 public:
  // Number of rings so far; wraps around.
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  // Increments the count and wakes all waiters. Waiters see all earlier writes of the caller.
  void ring();
  // Sleeps until the count differs from `seen`. May return earlier.
  void wait(std::uint32_t seen);

 private:
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> waiting_{0};  // waiters; ringing without waiters needs no system call
};

}  // namespace weft::base
