// What the bytes of the one rank travel over: host memory, or emulated links.
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

  // While no operation is under way. None: host memory.
  void set(const std::optional<grid::Fabric>& fabric);
  // Whether bytes stay in the device, over free links too.
  bool are_emulated() const { return emulated_.load(std::memory_order_relaxed); }

  // When bytes that leave now, in both directions, have passed this rank's ports: those of its
  // peers are free when these are, since every rank does what this one does. 0: at once.
  std::int64_t reserve(const Membership& group, std::span<const Part> parts);
  // Sleeps, the last moments awake. SystemError where the rank fails meanwhile, or has failed.
  void wait_until(std::int64_t end_ns);

  void fail();  // ends the waiting

 private:
  Wire wire_;
  std::atomic<bool> emulated_{false};
  std::mutex mutex_;
  std::condition_variable failed_;
  std::atomic<bool> has_failed_{false};
};

}  // namespace weft::comm::loopback
