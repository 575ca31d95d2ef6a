// A CPU that only counts: memory of any size that is never filled, streams whose work is over when
// it is enqueued, and messages of which only short ones arrive. With operations that do nothing
// (kernels/cpu/dry_operations.h) a step takes and gives back what it would on a real device.
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
