#include "tests/devices/hidden_device_support.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <vector>

#include "tests/sanitized.h"
#include "weft/base/check.h"
#include "weft/kernels/cpu/operations.h"
#include "weft/tensor/cpu/device.h"
#include "weft/tensor/pieces.h"

namespace weft::devices {
namespace {

using tensor::Memory;

// Reserved addresses, not memory. A sanitizer has taken most addresses.
constexpr std::size_t kReserved = std::size_t{kSanitized ? 2 : 64} << 30;
constexpr std::size_t kPage = 64 << 10;  // page size of the largest kind

std::byte* reserve(int rights) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* at = ::mmap(nullptr, kReserved, rights, flags, -1, 0);
  if (at == MAP_FAILED) base::throw_errno("cannot reserve addresses");
  return static_cast<std::byte*>(at);
}

// Allocator over the reservation; freed pieces are reused by size.
class HiddenMemory {
 public:
  static HiddenMemory& of_this_process() {
    static HiddenMemory memory;
    return memory;
  }

  const std::byte* begin() const { return shown_; }
  const std::byte* mapped() const { return mapped_; }

  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = whole_pages(bytes);
    std::vector<std::byte*>& free = free_[size];
    if (!free.empty()) {
      std::byte* at = free.back();
      free.pop_back();
      return at;
    }
    CHECK(used_ + size <= kReserved, "{} of {} reserved bytes are used", used_, kReserved);
    std::byte* at = shown_ + used_;
    used_ += size;
    return at;
  }

  void give_back(std::byte* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = whole_pages(bytes);
    ::madvise(mapped_ + (data - shown_), size, MADV_DONTNEED);
    free_[size].push_back(data);
  }

 private:
  static std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  std::byte* const shown_ = reserve(PROT_NONE);
  std::byte* const mapped_ = reserve(PROT_READ | PROT_WRITE);
  std::mutex mutex_;
  std::size_t used_ = 0;
  std::map<std::size_t, std::vector<std::byte*>> free_;
};

class HiddenDevice final : public tensor::cpu::CpuDevice {
 public:
  explicit HiddenDevice(int threads)
      : CpuDevice(kernels::cpu::operations(), threads, window(HiddenMemory::of_this_process())) {}

  std::string_view name() const override { return "hidden cpu"; }

  std::byte* take(Memory memory, std::size_t bytes) override {
    return memory == Memory::HostVisible ? CpuDevice::take(memory, bytes)
                                         : HiddenMemory::of_this_process().take(bytes);
  }
  void give_back(Memory memory, std::byte* data, std::size_t bytes) override {
    memory == Memory::HostVisible ? CpuDevice::give_back(memory, data, bytes)
                                  : HiddenMemory::of_this_process().give_back(data, bytes);
  }
  std::unique_ptr<tensor::Region> make_region(Memory memory) override {
    return std::make_unique<tensor::Pieces>(*this, memory, kPage);
  }

 private:
  static Window window(const HiddenMemory& memory) {
    return {.begin = reinterpret_cast<std::uintptr_t>(memory.begin()),
            .bytes = kReserved,
            .mapped = reinterpret_cast<std::uintptr_t>(memory.mapped())};
  }
};

}  // namespace

std::unique_ptr<tensor::Device> make_hidden_device(int threads) {
  return std::make_unique<HiddenDevice>(threads);
}

}  // namespace weft::devices
