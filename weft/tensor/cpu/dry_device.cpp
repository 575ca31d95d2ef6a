#include "weft/tensor/cpu/dry_device.h"

#include <sys/mman.h>

#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/tensor/cpu/transfers.h"
#include "weft/tensor/pieces.h"
#include "weft/tensor/stream.h"

namespace weft::tensor::cpu {
namespace {

constexpr std::size_t kDryGranule = 2u << 20;
// Counts that the host reads travel in messages below this size; longer messages are only counted.
// Counts that would not fit arrive damaged and end the run.
constexpr std::int64_t kLongestMessage = 64 << 10;

class DryTransfers final : public Transfers {
 public:
  explicit DryTransfers(CpuDevice& device) : real_(device) {}

  void copy(std::byte* to, const std::byte* from, std::int64_t bytes) override {
    if (bytes <= kLongestMessage) real_.copy(to, from, bytes);
  }
  void copy_both(std::span<const Copy> some, std::span<const Copy> others) override {
    for (const std::span<const Copy> copies : {some, others}) {
      for (const auto& [to, from, bytes] : copies) copy(to, from, bytes);
    }
  }
  void clear(std::byte* to, std::int64_t bytes) override {
    if (bytes <= kLongestMessage) real_.clear(to, bytes);
  }
  void reduce(DType, Reduce, std::byte*, std::span<const std::byte* const>, std::int64_t) override {
  }
  std::shared_ptr<std::byte> scratch(std::int64_t bytes) override { return real_.scratch(bytes); }
  std::shared_ptr<std::byte> host_scratch(std::int64_t bytes) override {
    return real_.host_scratch(bytes);
  }
  std::byte* on_host(const std::byte* memory) override { return real_.on_host(memory); }

 private:
  CpuTransfers real_;
};

}  // namespace

std::unique_ptr<Stream> DryDevice::make_stream(std::string name, StreamRole) {
  return CpuDevice::make_stream(std::move(name), StreamRole::Alone);
}

// Untouched pages take no memory.
std::byte* DryDevice::take(Memory memory, std::size_t bytes) {
  if (memory == Memory::HostVisible) return CpuDevice::take(memory, bytes);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (at == MAP_FAILED) {
    base::throw_errno(base::text("no addresses for {}", base::human_bytes(double(bytes))));
  }
  return static_cast<std::byte*>(at);
}

std::unique_ptr<Region> DryDevice::make_region(Memory memory) {
  if (memory == Memory::HostVisible) return CpuDevice::make_region(memory);
  return std::make_unique<Pieces>(*this, memory, kDryGranule);
}

std::unique_ptr<Transfers> DryDevice::make_transfers() {
  return std::make_unique<DryTransfers>(*this);
}

}  // namespace weft::tensor::cpu
