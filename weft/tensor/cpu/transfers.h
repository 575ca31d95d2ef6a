// Transfers done by the CPU's cores.
#pragma once

#include "weft/tensor/cpu/device.h"
#include "weft/tensor/transfers.h"

namespace weft::tensor::cpu {

class CpuTransfers final : public Transfers {
 public:
  explicit CpuTransfers(CpuDevice& device) : device_(device) {}

  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void copy_away(std::byte* to, const std::byte* from, std::int64_t bytes) override;
  void copy_both(std::span<const Copy> some, std::span<const Copy> others) override;
  void clear(std::byte* to, std::int64_t bytes) override;
  void reduce(DType dtype,
              Reduce reduce,
              std::byte* out,
              std::span<const std::byte* const> sources,
              std::int64_t elements) override;
  std::shared_ptr<std::byte> scratch(std::int64_t bytes) override;
  std::shared_ptr<std::byte> host_scratch(std::int64_t bytes) override;
  std::byte* on_host(const std::byte* memory) override;

 private:
  CpuDevice& device_;
};

}  // namespace weft::tensor::cpu
