#include "weft/tensor/cuda/staging.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weft::tensor::cuda {

Staging::~Staging() {
  for (const Lent& lent : lent_) free_.emplace(lent.piece.bytes, lent.piece.data);
  for (const auto& [bytes, data] : free_) device_.give_back(Memory::HostVisible, data, bytes);
}

std::byte* Staging::take(std::int64_t bytes, std::uint64_t ticket) {
  return take_for(nullptr, bytes, ticket);
}

std::byte* Staging::take_for(std::byte* to, std::int64_t bytes, std::uint64_t ticket) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(4096, std::size_t(bytes)));
  Piece piece{nullptr, size};
  if (const auto found = free_.find(size); found != free_.end()) {
    piece.data = found->second;
    free_.erase(found);
  } else {
    piece.data = device_.take(Memory::HostVisible, size);
  }
  lent_.push_back({ticket, piece, to, bytes});
  return piece.data;
}

void Staging::pass(std::uint64_t ticket) {
  while (!lent_.empty() && lent_.front().ticket <= ticket) {
    const Lent& lent = lent_.front();
    if (lent.to != nullptr) std::memcpy(lent.to, lent.piece.data, std::size_t(lent.bytes));
    free_.emplace(lent.piece.bytes, lent.piece.data);
    lent_.pop_front();
  }
}

}  // namespace weft::tensor::cuda
