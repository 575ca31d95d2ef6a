// The emulated fabric of the ranks of one process: their ports, shared by all their groups, so that
// expert, data and pipeline traffic contend.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>

#include "weft/grid/fabric.h"

namespace weft::comm {

class Wire {
 public:
  Wire(const grid::Fabric& fabric, int ranks) : ranks_(ranks) { set(fabric); }

  // While no operation is under way.
  void set(const grid::Fabric& fabric);
  // Whether links are emulated; free ones cost nothing.
  bool is_emulated() const { return emulated_.load(std::memory_order_relaxed); }

  // grid::Ports::reserve for an operation whose members are all here now, by tensor::now_ns().
  void reserve(std::span<const grid::Transfer> transfers, std::span<std::int64_t> end_ns);

 private:
  const int ranks_;
  std::atomic<bool> emulated_{false};
  std::mutex mutex_;
  std::optional<grid::Ports> ports_;
};

}  // namespace weft::comm
