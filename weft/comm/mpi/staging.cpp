#include "weft/comm/mpi/staging.h"

namespace weft::comm::mpi {

Staging::Staging(const Membership& group, std::span<const Part> parts, tensor::Transfers& transfers)
    : parts_(parts), transfers_(transfers), staged_(parts.begin(), parts.end()) {
  const auto memory_for = [&](std::int64_t bytes) {
    memory_->push_back(
        std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)));
    return memory_->back().get();
  };
  for (Part& part : staged_) {
    if (part.member == group.self) continue;
    if (part.out_bytes > 0 && transfers.on_host(part.out) == nullptr) {
      std::byte* copy = memory_for(part.out_bytes);
      transfers.copy(copy, part.out, part.out_bytes);
      part.out = copy;
    }
    if (part.in_bytes > 0 && transfers.on_host(part.in) == nullptr) {
      part.in = memory_for(part.in_bytes);
    }
  }
}

void Staging::deliver() {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (staged_[i].in != parts_[i].in) {
      transfers_.copy(parts_[i].in, staged_[i].in, parts_[i].in_bytes);
    }
  }
}

}  // namespace weft::comm::mpi
