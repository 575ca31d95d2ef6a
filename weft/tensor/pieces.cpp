#include "weft/tensor/pieces.h"

namespace weft::tensor {

Pieces::~Pieces() {
  for (const std::span<std::byte>& piece : pieces_) {
    device_.give_back(memory_, piece.data(), piece.size());
  }
}

std::span<std::byte> Pieces::grow(std::size_t bytes) {
  const std::size_t size = (bytes + granule_ - 1) / granule_ * granule_;
  pieces_.emplace_back(device_.take(memory_, size), size);
  return pieces_.back();
}

}  // namespace weft::tensor
