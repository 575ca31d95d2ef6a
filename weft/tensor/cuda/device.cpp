#include "weft/tensor/cuda/device.h"

#include "weft/base/text.h"
#include "weft/tensor/cuda/cards.h"
#include "weft/tensor/cuda/stream.h"

namespace weft::tensor::cuda {

CudaDevice::CudaDevice(const kernels::Operations& operations,
                       int local_rank,
                       Deterministic deterministic)
    : Device(operations), ordinal_(card_of(local_rank)), deterministic_(deterministic) {
  use();
  // Ranks that share a card have more threads than there are cores: who waits gives way.
  check("cudaSetDeviceFlags", cudaSetDeviceFlags(cudaDeviceScheduleYield));
  check_kernels(ordinal_);
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
  if (error == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    cudaGetLastError();  // it is told here
    check("cudaMemGetInfo", cudaMemGetInfo(&free, &total));
    throw base::SystemError(base::text("GPU {} has no {} left: {} of {} are free",
                                       ordinal_,
                                       base::human_bytes(double(bytes)),
                                       base::human_bytes(double(free)),
                                       base::human_bytes(double(total))));
  }
  check("cudaMalloc", error);
  return static_cast<std::byte*>(data);
}

void CudaDevice::give_back(Memory memory, std::byte* data, std::size_t) {
  memory == Memory::HostVisible ? cudaFreeHost(data) : cudaFree(data);
}

}  // namespace weft::tensor::cuda
