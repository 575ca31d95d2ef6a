#include "weft/comm/wire.h"

#include "weft/tensor/stream.h"

namespace weft::comm {

void Wire::set(const grid::Fabric& fabric) {
  const std::lock_guard lock(mutex_);
  ports_.emplace(fabric, ranks_);
  emulated_ = !fabric.is_free();
}

void Wire::reserve(std::span<const grid::Transfer> transfers, std::span<std::int64_t> end_ns) {
  const std::lock_guard lock(mutex_);
  ports_->reserve(tensor::now_ns(), transfers, end_ns);
}

}  // namespace weft::comm
