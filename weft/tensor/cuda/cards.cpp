#include "weft/tensor/cuda/cards.h"

#include <cstdlib>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/tensor/cuda/call.h"
#include "weft/tensor/cuda/reduce.h"

namespace weft::tensor::cuda {
namespace {

using base::text;

// Streams that share a connection run one after the other. The variable is read at the process's
// first CUDA call.
void ask_for_connections() { ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); }

constexpr int kLeastCapability = 80;  // lowest architecture that kernels can be built for

// 12040 gives "12.4".
std::string version_text(int version) { return text("{}.{}", version / 1000, version % 1000 / 10); }

// First driver release that runs programs of this CUDA version and its later minor versions.
std::string driver_release(int runtime_version) {
  const int major = runtime_version / 1000;
  if (major == 12) return "release 525 or later";
  if (major == 13) return "release 580 or later";
  return text("a release that knows CUDA {}", major);
}

std::string why_old(int driver, int runtime) {
  return text(
      "the NVIDIA driver is too old: it knows CUDA {}, and this build needs CUDA {}.0 or later; "
      "install a driver of {}, or build weft again with a CUDA toolkit that the driver knows "
      "(12.4 or later)",
      version_text(driver),
      runtime / 1000,
      driver_release(runtime));
}

std::string why_no_driver(int runtime) {
  return text(
      "there is no NVIDIA driver (libcuda.so.1); install one of {}, or start the container with "
      "the GPUs (docker run --gpus all)",
      driver_release(runtime));
}

// Message for an error of cudaGetDeviceCount, with the fix.
std::string why_no_card(cudaError_t error) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (error == cudaErrorStubLibrary) {
    return "libcuda.so.1 is the toolkit's stub and no driver; take its folder out of "
           "LD_LIBRARY_PATH";
  }
  if (driver == 0) return why_no_driver(runtime);
  if (error == cudaErrorInsufficientDriver) return why_old(driver, runtime);
  if (error == cudaErrorNoDevice) {
    return text(
        "the NVIDIA driver (CUDA {}) shows no GPU; look at nvidia-smi and at CUDA_VISIBLE_DEVICES, "
        "which hides those that it does not name",
        version_text(driver));
  }
  if (error == cudaErrorSystemNotReady) {
    return "the GPUs are not ready; start NVIDIA's fabric manager, which cards behind NVSwitch "
           "need (systemctl start nvidia-fabricmanager)";
  }
  if (error == cudaErrorSystemDriverMismatch) {
    return "the NVIDIA driver's library and its kernel module are of different releases; load the "
           "module again or restart the machine";
  }
  return text("cudaGetDeviceCount: {} (driver for CUDA {}, this build has {}); look at nvidia-smi",
              cudaGetErrorString(error),
              version_text(driver),
              version_text(runtime));
}

// CMake's name of an architecture. Hopper's own instructions need the letter.
std::string architecture_of(int capability) {
  return text("{}{}", capability, capability == 90 ? "a" : "");
}

std::string why_no_image(int ordinal) {
  cudaDeviceProp card{};
  check("cudaGetDeviceProperties", cudaGetDeviceProperties(&card, ordinal));
  const int capability = 10 * card.major + card.minor;
  const std::string facts =
      text("GPU {} is a {} of compute capability {}.{}, and this build has kernels for {}",
           ordinal,
           card.name,
           card.major,
           card.minor,
           built_for());
  if (capability < kLeastCapability) {
    return text("{}; weft needs one of capability {}.{} or later",
                facts,
                kLeastCapability / 10,
                kLeastCapability % 10);
  }
  return text("{}; configure with -DWEFT_CUDA_ARCHITECTURES={} and build weft_cuda again",
              facts,
              architecture_of(capability));
}

}  // namespace

std::string_view built_for() { return WEFT_CUDA_ARCHITECTURES; }

int count_cards() {
  ask_for_connections();
  int cards = 0;
  cudaError_t error = cudaGetDeviceCount(&cards);
  if (error == cudaSuccess && cards == 0) error = cudaErrorNoDevice;
  if (error == cudaSuccess) return cards;
  cudaGetLastError();  // reported here
  throw base::SystemError(why_no_card(error));
}

int card_of(int local_rank) { return local_rank % count_cards(); }

void check_kernels(int ordinal) {
  const cudaError_t error = find_reduce_image();
  if (error == cudaSuccess) return;
  cudaGetLastError();  // reported here
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction) {
    throw base::SystemError(why_no_image(ordinal));
  }
  throw base::SystemError(
      text("GPU {} cannot be used: {}; look at nvidia-smi", ordinal, cudaGetErrorString(error)));
}

}  // namespace weft::tensor::cuda
