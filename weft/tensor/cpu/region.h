// Process memory that grows in place: addresses are reserved far ahead of use.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "weft/tensor/device.h"

namespace weft::tensor::cpu {

class CpuRegion final : public Region {
 public:
  CpuRegion() = default;
  ~CpuRegion() override;
  CpuRegion(const CpuRegion&) = delete;
  CpuRegion& operator=(const CpuRegion&) = delete;

  std::span<std::byte> grow(std::size_t bytes) override;
  bool grows_in_place() const override;
  std::size_t give_back_end(std::size_t bytes) override;

 private:
  void reserve(std::size_t bytes);

  std::vector<std::span<std::byte>> reserved_;
  std::size_t used_ = 0;  // bytes used of the last reservation
};

}  // namespace weft::tensor::cpu
