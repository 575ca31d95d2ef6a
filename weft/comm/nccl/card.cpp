#include "weft/comm/nccl/card.h"

#include <unistd.h>

#include <array>
#include <fstream>

#include "weft/base/text.h"
#include "weft/tensor/cuda/call.h"
#include "weft/tensor/cuda/cards.h"

namespace weft::comm::nccl {
namespace {

// Identifies the machine by host name and boot id; host names alone may repeat.
std::string this_machine() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return base::text("{} [{}]", name.data(), boot);
}

}  // namespace

Card use_card(int local_rank) {
  Card card{.ordinal = tensor::cuda::card_of(local_rank)};
  tensor::cuda::check("cudaSetDevice", cudaSetDevice(card.ordinal));
  std::array<char, 32> bus{};
  tensor::cuda::check("cudaDeviceGetPCIBusId",
                      cudaDeviceGetPCIBusId(bus.data(), int(bus.size()), card.ordinal));
  card.text = base::text("GPU {} of {}", bus.data(), this_machine());
  return card;
}

}  // namespace weft::comm::nccl
