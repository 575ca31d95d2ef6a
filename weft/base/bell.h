// A counter that threads wait on.
//
// Plainer than what the library has, for threads of different priority on one core: signalling a
// condition variable may wait until those signalled before have run, and std::atomic::wait yields
// the core before it sleeps, for which the scheduler makes the thread pay when it is wanted next.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::base {

class Bell {
 public:
  // How often it rang; wraps around.
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  // One more: everybody who waits goes on. What the caller wrote before is seen by them.
  void ring();
  // Sleeps until it has rung since `seen` was the count. May return earlier.
  void wait(std::uint32_t seen);

 private:
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> waiting_{0};  // so that ringing to nobody costs nothing
};

}  // namespace weft::base
