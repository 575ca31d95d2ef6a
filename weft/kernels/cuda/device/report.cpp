#include "weft/kernels/cuda/device/report.h"

#include <array>

#include "weft/kernels/cuda/attention/cudnn_attention.h"
#include "weft/tensor/cuda/call.h"
#include "weft/tensor/cuda/cards.h"

namespace weft::kernels::cuda {
namespace {

using tensor::cuda::check;

int attribute(cudaDeviceAttr name, int ordinal) {
  int value = 0;
  check("cudaDeviceGetAttribute", cudaDeviceGetAttribute(&value, name, ordinal));
  return value;
}

std::string pci_of(int ordinal) {
  std::array<char, 32> address{};
  check("cudaDeviceGetPCIBusId",
        cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), ordinal));
  return address.data();
}

// Link to another card. The runtime does not name it: a card does atomic operations on another's
// memory over NVLink, and not over PCI.
GpuLink link_between(int from, int to) {
  int reaches = 0, atomics = 0;
  check("cudaDeviceCanAccessPeer", cudaDeviceCanAccessPeer(&reaches, from, to));
  if (reaches == 0) return GpuLink::Host;
  check("cudaDeviceGetP2PAttribute",
        cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to));
  return atomics != 0 ? GpuLink::NvLink : GpuLink::Pci;
}

// Reason why a card cannot be used. Makes a context on it, which is the only way to know.
void try_card(Gpu& gpu) {
  check("cudaSetDevice", cudaSetDevice(gpu.ordinal));
  tensor::cuda::check_kernels(gpu.ordinal);
  std::size_t free = 0, total = 0;
  check("cudaMemGetInfo", cudaMemGetInfo(&free, &total));
  gpu.free_bytes = static_cast<std::int64_t>(free);
}

Gpu describe(int ordinal, int cards) {
  cudaDeviceProp facts{};
  check("cudaGetDeviceProperties", cudaGetDeviceProperties(&facts, ordinal));
  Gpu gpu{.ordinal = ordinal,
          .name = facts.name,
          .major = facts.major,
          .minor = facts.minor,
          .multiprocessors = facts.multiProcessorCount,
          .memory_bytes = static_cast<std::int64_t>(facts.totalGlobalMem),
          .pci = pci_of(ordinal),
          .numa_node = attribute(cudaDevAttrHostNumaId, ordinal)};
  for (int other = 0; other < cards; ++other) {
    if (other != ordinal) gpu.peers.push_back({other, link_between(ordinal, other)});
  }
  return gpu;
}

Gpu report_card(int ordinal, int cards) {
  Gpu gpu{.ordinal = ordinal};
  try {
    gpu = describe(ordinal, cards);
    try_card(gpu);
  } catch (const std::exception& error) {
    cudaGetLastError();  // reported here
    gpu.why_not = error.what();
  }
  return gpu;
}

}  // namespace

void report(GpuReport& report) {
  report.built_for = tensor::cuda::built_for();
  report.why_no_cudnn = why_no_cudnn();
  try {
    const int cards = tensor::cuda::count_cards();
    int current = 0;
    check("cudaGetDevice", cudaGetDevice(&current));
    for (int i = 0; i < cards; ++i) report.gpus.push_back(report_card(i, cards));
    cudaSetDevice(current);
  } catch (const std::exception& error) {
    cudaGetLastError();  // reported here
    report.why_none = error.what();
  }
  cudaRuntimeGetVersion(&report.runtime_version);
  cudaDriverGetVersion(&report.driver_version);
}

}  // namespace weft::kernels::cuda
