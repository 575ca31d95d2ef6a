#include "weft/tensor/cuda/device.h"

#include "weft/base/error.h"
#include "weft/base/parallel/cores.h"
#include "weft/base/text.h"
#include "weft/tensor/cuda/cards.h"
#include "weft/tensor/cuda/region.h"
#include "weft/tensor/cuda/stream.h"
#include "weft/tensor/pieces.h"

namespace weft::tensor::cuda {
namespace {

// Bytes taken from the GPU at a time, if memory cannot grow in place.
constexpr std::size_t kVisiblePiece = 1u << 20, kDevicePiece = 32u << 20;

// Keeps the calling thread, and threads it starts, on the cores nearest to the GPU. Memory that
// they pin lies there too. Without NUMA information, or if the thread may use none of those cores,
// nothing changes.
void stay_near(int ordinal) {
  int node = -1;
  if (cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, ordinal) != cudaSuccess) {
    cudaGetLastError();
    return;
  }
  base::stay_on_node(node);
}

}  // namespace

CudaDevice::CudaDevice(const kernels::Operations& operations,
                       int local_rank,
                       Deterministic deterministic)
    : Device(operations), ordinal_(card_of(local_rank)), deterministic_(deterministic) {
  use();
  // Ranks that share a GPU have more threads than there are cores: waiting threads yield.
  check("cudaSetDeviceFlags", cudaSetDeviceFlags(cudaDeviceScheduleYield));
  check_kernels(ordinal_);
  stay_near(ordinal_);
}

std::unique_ptr<Stream> CudaDevice::make_stream(std::string name, StreamRole role) {
  use();
  return std::make_unique<CudaStream>(*this, std::move(name), role);
}

std::byte* CudaDevice::take(Memory memory, std::size_t bytes) {
  use();
  void* data = nullptr;
  if (memory == Memory::HostVisible) {
    check("cudaHostAlloc",
          cudaHostAlloc(&data, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    return static_cast<std::byte*>(data);
  }
  const cudaError_t error = cudaMalloc(&data, bytes);
  if (error == cudaErrorMemoryAllocation) throw_no_memory(bytes);
  check("cudaMalloc", error);
  return static_cast<std::byte*>(data);
}

void CudaDevice::give_back(Memory memory, std::byte* data, std::size_t) {
  memory == Memory::HostVisible ? cudaFreeHost(data) : cudaFree(data);
}

std::unique_ptr<Region> CudaDevice::make_region(Memory memory) {
  if (memory == Memory::HostVisible) return std::make_unique<Pieces>(*this, memory, kVisiblePiece);
  if (std::unique_ptr<Region> growing = make_growing_region(*this)) return growing;
  return std::make_unique<Pieces>(*this, memory, kDevicePiece);
}

void CudaDevice::throw_no_memory(std::size_t bytes) const {
  std::size_t free = 0, total = 0;
  cudaGetLastError();  // reported here
  check("cudaMemGetInfo", cudaMemGetInfo(&free, &total));
  throw base::SystemError(base::text("GPU {} has no {} left: {} of {} are free",
                                     ordinal_,
                                     base::human_bytes(double(bytes)),
                                     base::human_bytes(double(free)),
                                     base::human_bytes(double(total))));
}

}  // namespace weft::tensor::cuda
