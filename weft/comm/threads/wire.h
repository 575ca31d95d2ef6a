// The emulated fabric of a world of threads: the ports of all ranks, shared by all their groups, so
// that expert, data and pipeline traffic contend.
#pragma once

#include <mutex>

#include "weft/grid/fabric.h"

namespace weft::comm::threads {

class Wire {
 public:
  Wire(const grid::Fabric& fabric, int ranks) : ports_(fabric, ranks) {}

  // grid::Ports::reserve for an operation whose members are all here now, by tensor::now_ns().
  void reserve(std::span<const grid::Transfer> transfers, std::span<std::int64_t> end_ns);

 private:
  std::mutex mutex_;
  grid::Ports ports_;
};

// Lets sleeps of the calling thread, and of the threads it starts from now on, end on time. Linux
// otherwise rounds each up by 50 microseconds to save wake-ups, which is more than a link's
// latency.
void sleep_precisely();

}  // namespace weft::comm::threads
