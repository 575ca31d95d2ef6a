#include "weft/comm/threads/wire.h"

#include <sys/prctl.h>

#include "weft/tensor/stream.h"

namespace weft::comm::threads {

void Wire::set(const grid::Fabric& fabric) {
  const std::lock_guard lock(mutex_);
  ports_.emplace(fabric, ranks_);
  emulated_ = !fabric.is_free();
}

void Wire::reserve(std::span<const grid::Transfer> transfers, std::span<std::int64_t> end_ns) {
  const std::lock_guard lock(mutex_);
  ports_->reserve(tensor::now_ns(), transfers, end_ns);
}

void sleep_precisely() {
  // In nanoseconds. Where it is refused sleeps only end later.
  prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
}

}  // namespace weft::comm::threads
