// CPU device that only counts. Memory may have any size and is never filled. Work is complete when
// it is enqueued, and only short messages arrive. With dry operations
// (kernels/cpu/dry_operations.h) a step allocates and releases what it would on a real device.
#pragma once

#include "weft/tensor/cpu/device.h"

namespace weft::tensor::cpu {

class DryDevice final : public CpuDevice {
 public:
  explicit DryDevice(const kernels::Operations& operations) : CpuDevice(operations, 1) {}

  std::string_view name() const override { return "dry"; }
  std::unique_ptr<Stream> make_stream(std::string name, StreamRole role) override;
  std::byte* take(Memory memory, std::size_t bytes) override;
  std::unique_ptr<Region> make_region(Memory memory) override;
  std::unique_ptr<Transfers> make_transfers() override;
};

}  // namespace weft::tensor::cpu
