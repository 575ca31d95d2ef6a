#include "weft/tensor/cpu/device.h"

#include <sys/mman.h>

#include "weft/base/check.h"
#include "weft/tensor/cpu/region.h"
#include "weft/tensor/cpu/stream.h"
#include "weft/tensor/cpu/transfers.h"

namespace weft::tensor::cpu {

CpuDevice::CpuDevice(const kernels::Operations& operations, int threads)
    : CpuDevice(operations, threads, {}) {}

CpuDevice::CpuDevice(const kernels::Operations& operations, int threads, const Window& window)
    : Device(operations), threads_(threads), window_(window) {
  CHECK(threads >= 1, "{} compute threads", threads);
}

std::unique_ptr<Stream> CpuDevice::make_stream(std::string name, StreamRole role) {
  const int threads = role == StreamRole::Communication ? 1 : threads_;
  return std::make_unique<CpuStream>(*this, std::move(name), threads, role);
}

std::byte* CpuDevice::take(Memory, std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    base::throw_errno(base::text("cannot allocate {}", base::human_bytes(double(bytes))));
  }
  ::madvise(at, bytes, MADV_HUGEPAGE);  // a hint; its failure changes nothing
  return static_cast<std::byte*>(at);
}

void CpuDevice::give_back(Memory, std::byte* data, std::size_t bytes) { ::munmap(data, bytes); }

std::unique_ptr<Region> CpuDevice::make_region(Memory) { return std::make_unique<CpuRegion>(); }

std::unique_ptr<Transfers> CpuDevice::make_transfers() {
  return std::make_unique<CpuTransfers>(*this);
}

}  // namespace weft::tensor::cpu
