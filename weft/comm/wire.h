// Emulated fabric of the ranks of one process. All groups share its ports, so expert, data and
// pipeline traffic contend.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "weft/grid/fabric.h"

namespace weft::comm {

class Wire {
 public:
  Wire(const grid::Fabric& fabric, int ranks) : ranks_(ranks) { set(fabric); }

  // Call only while no operation is in flight.
  void set(const grid::Fabric& fabric);
  // True if links are emulated; free links take no time.
  bool is_emulated() const { return emulated_.load(std::memory_order_relaxed); }

  // Calls grid::Ports::reserve for an operation whose members have all arrived, at
  // tensor::now_ns().
  void reserve(std::span<const grid::Transfer> transfers, std::span<std::int64_t> end_ns);

 private:
  const int ranks_;
  std::atomic<bool> emulated_{false};
  std::mutex mutex_;
  std::optional<grid::Ports> ports_;
};

}  // namespace weft::comm
