#include "weft/tensor/cuda/device.h"

#include <cstdlib>

#include "weft/base/text.h"
#include "weft/tensor/cuda/stream.h"

namespace weft::tensor::cuda {
namespace {

// Streams that share a connection run one after the other. Read at the first CUDA call of the
// process.
void ask_for_connections() { ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

void check_card(int ordinal) {
  int cards = 0;
  check("cudaGetDeviceCount", cudaGetDeviceCount(&cards));
  if (ordinal < 0 || ordinal >= cards) {
    throw base::SystemError(
        base::text("there is no GPU {}: the driver knows {} (see CUDA_VISIBLE_DEVICES)",
                   ordinal,
                   cards));
  }
}

}  // namespace

CudaDevice::CudaDevice(const kernels::Operations& operations, int ordinal)
    : Device(operations), ordinal_(ordinal) {
  ask_for_connections();
  check_card(ordinal);
  use();
  // Ranks that share a card have more threads than there are cores: who waits gives way.
  check("cudaSetDeviceFlags", cudaSetDeviceFlags(cudaDeviceScheduleYield));
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
