#include "weft/comm/nccl/card.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "weft/tensor/cuda/call.h"

namespace weft::comm::nccl {
namespace {

// Names of machines may be the same; the number that each gives itself at its start is not.
std::string this_machine() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return base::text("{} [{}]", name.data(), boot);
}

}  // namespace

Card use_card(int local_rank) {
  // As tensor/cuda does: whoever makes the first CUDA call of the process decides it.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int cards = 0;
  tensor::cuda::check("cudaGetDeviceCount", cudaGetDeviceCount(&cards));
  if (cards == 0) {
    throw base::SystemError("this process sees no GPU (see CUDA_VISIBLE_DEVICES)");
  }
  Card card{.ordinal = local_rank % cards};
  tensor::cuda::check("cudaSetDevice", cudaSetDevice(card.ordinal));
  std::array<char, 32> bus{};
  tensor::cuda::check("cudaDeviceGetPCIBusId",
                      cudaDeviceGetPCIBusId(bus.data(), int(bus.size()), card.ordinal));
  card.text = base::text("GPU {} of {}", bus.data(), this_machine());
  return card;
}

}  // namespace weft::comm::nccl
