#include "weft/tensor/cuda/region.h"

#include <cuda.h>

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/tensor/cuda/device.h"

namespace weft::tensor::cuda {
namespace {

// Driver functions for mapped memory, looked up at run time: the driver is not linked.
struct Driver {
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuGetErrorString) error_string = nullptr;
};

[[maybe_unused]] constexpr int kSince = 10020;  // CUDA release that introduced them

template <typename F>
bool find(const char* name, F& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, kSince, cudaEnableDefault, &result);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) {
    cudaGetLastError();
    return false;
  }
  function = reinterpret_cast<F>(found);
  return true;
}

// nullptr: the driver lacks one of them.
const Driver* driver() {
  static const Driver* const found = []() -> const Driver* {
    static Driver all;
    const bool complete = find("cuMemGetAllocationGranularity", all.granularity) &&
                          find("cuMemAddressReserve", all.reserve) &&
                          find("cuMemAddressFree", all.free) && find("cuMemCreate", all.create) &&
                          find("cuMemRelease", all.release) && find("cuMemMap", all.map) &&
                          find("cuMemUnmap", all.unmap) && find("cuMemSetAccess", all.set_access) &&
                          find("cuGetErrorString", all.error_string);
    return complete ? &all : nullptr;
  }();
  return found;
}

CUmemAllocationProp memory_of(int ordinal) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal};
  return properties;
}

constexpr std::size_t kPart = 32u << 20;  // bytes mapped at a time

class GrowingRegion final : public Region {
 public:
  GrowingRegion(const CudaDevice& device, const Driver& driver, std::size_t granule)
      : device_(device), driver_(driver), granule_(granule) {
    device_.use();
    std::size_t free = 0, total = 0;
    cuda::check("cudaMemGetInfo", cudaMemGetInfo(&free, &total));
    room_ = whole_granules(total);
    check("cuMemAddressReserve", driver_.reserve(&begin_, room_, 0, 0, 0));
  }

  ~GrowingRegion() override {
    cudaSetDevice(device_.ordinal());
    std::size_t at = 0;
    for (const std::size_t bytes : mapped_) {
      driver_.unmap(begin_ + at, bytes);
      at += bytes;
    }
    driver_.free(begin_, room_);
  }
  GrowingRegion(const GrowingRegion&) = delete;
  GrowingRegion& operator=(const GrowingRegion&) = delete;

  std::span<std::byte> grow(std::size_t bytes) override {
    device_.use();
    const std::size_t size = whole_granules(bytes);
    if (size > room_ - used_) device_.throw_no_memory(size);
    const CUdeviceptr at = begin_ + used_;
    const std::size_t before = used_;
    try {
      // Maps in parts, so that the end can be returned to the GPU.
      for (const std::size_t end = used_ + size; used_ < end;) {
        const std::size_t part = std::min(end - used_, std::max(kPart, granule_));
        map(begin_ + used_, part);
        mapped_.push_back(part);
        used_ += part;
      }
    } catch (...) {
      give_back_end(used_ - before);
      throw;
    }
    return {reinterpret_cast<std::byte*>(at), size};
  }

  bool grows_in_place() const override { return true; }

  std::size_t give_back_end(std::size_t bytes) override {
    device_.use();
    std::size_t gone = 0;
    while (!mapped_.empty() && gone + mapped_.back() <= bytes) {
      const std::size_t part = mapped_.back();
      check("cuMemUnmap", driver_.unmap(begin_ + used_ - part, part));
      mapped_.pop_back();
      used_ -= part;
      gone += part;
    }
    return gone;
  }

 private:
  std::size_t whole_granules(std::size_t bytes) const {
    return (bytes + granule_ - 1) / granule_ * granule_;
  }

  void check(std::string_view call, CUresult result) const {
    if (result == CUDA_SUCCESS) return;
    const char* why = nullptr;
    driver_.error_string(result, &why);
    throw base::SystemError(base::text("{}: {}", call, why == nullptr ? "unknown error" : why));
  }

  void map(CUdeviceptr at, std::size_t size) {
    const CUmemAllocationProp properties = memory_of(device_.ordinal());
    CUmemGenericAllocationHandle memory{};
    const CUresult created = driver_.create(&memory, size, &properties, 0);
    if (created == CUDA_ERROR_OUT_OF_MEMORY) device_.throw_no_memory(size);
    check("cuMemCreate", created);
    const CUresult mapped = driver_.map(at, size, 0, memory, 0);
    driver_.release(memory);  // the mapping keeps the memory
    check("cuMemMap", mapped);
    const CUmemAccessDesc access{.location = properties.location,
                                 .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUresult reachable = driver_.set_access(at, size, &access, 1);
    if (reachable != CUDA_SUCCESS) driver_.unmap(at, size);
    check("cuMemSetAccess", reachable);
  }

  const CudaDevice& device_;
  const Driver& driver_;
  const std::size_t granule_;
  CUdeviceptr begin_ = 0;
  std::size_t room_ = 0, used_ = 0;
  std::vector<std::size_t> mapped_;
};

}  // namespace

std::unique_ptr<Region> make_growing_region(const CudaDevice& device) {
  device.use();
  cudaFree(nullptr);  // driver functions need the GPU's context
  const Driver* functions = driver();
  if (functions == nullptr) return nullptr;
  const CUmemAllocationProp properties = memory_of(device.ordinal());
  std::size_t granule = 0;
  const CUresult told =
      functions->granularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  if (told != CUDA_SUCCESS || granule == 0) return nullptr;
  return std::make_unique<GrowingRegion>(device, *functions, granule);
}

}  // namespace weft::tensor::cuda
