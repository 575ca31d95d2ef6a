// Links of the one rank: host memory, or emulated links.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>

#include "weft/comm/membership.h"
#include "weft/comm/transport.h"
#include "weft/comm/wire.h"

namespace weft::comm::loopback {

class Links {
 public:
  explicit Links(int world) : wire_(grid::Fabric(), world) {}

  // Call only while no operation is in flight. nullopt: host memory.
  void set(const std::optional<grid::Fabric>& fabric);
  // True if bytes stay in the device, also over free links.
  bool are_emulated() const { return emulated_.load(std::memory_order_relaxed); }

  // End time of bytes that leave now, in both directions, at this rank's ports. Peers act like this
  // rank, so their ports are free at the same time. 0: at once.
  std::int64_t reserve(const Membership& group, std::span<const Part> parts);
  // Sleeps, and spins for the last moments. SystemError if the rank has failed or fails meanwhile.
  void wait_until(std::int64_t end_ns);

  void fail();  // ends the wait

 private:
  Wire wire_;
  std::atomic<bool> emulated_{false};
  std::mutex mutex_;
  std::condition_variable failed_;
  std::atomic<bool> has_failed_{false};
};

}  // namespace weft::comm::loopback
