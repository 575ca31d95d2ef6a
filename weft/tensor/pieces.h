// Region of separate pieces, for memory that cannot grow in place.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/tensor/device.h"

namespace weft::tensor {

class Pieces final : public Region {
 public:
  // `granule`: each piece of `memory` is a multiple of this many bytes.
  Pieces(Device& device, Memory memory, std::size_t granule)
      : device_(device), memory_(memory), granule_(granule) {}
  ~Pieces() override;
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  std::span<std::byte> grow(std::size_t bytes) override;
  bool grows_in_place() const override { return false; }
  std::size_t give_back_end(std::size_t) override { return 0; }  // whole pieces only

 private:
  Device& device_;
  const Memory memory_;
  const std::size_t granule_;
  std::vector<std::span<std::byte>> pieces_;
};

}  // namespace weft::tensor
