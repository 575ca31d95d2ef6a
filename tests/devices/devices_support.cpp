#include "tests/devices/devices_support.h"

#include <cstdlib>

#include "tests/devices/hidden_device_support.h"
#include "weft/base/check.h"
#include "weft/base/error.h"
#include "weft/kernels/device.h"

namespace weft::devices {

std::string name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::Cpu:
      return "Cpu";
    case DeviceKind::HiddenCpu:
      return "HiddenCpu";
    case DeviceKind::Cuda:
      return "Cuda";
  }
  UNREACHABLE("a device");
}

const std::string& why_no_gpu() {
  static const std::string kReason = [] {
    try {
      kernels::make_cuda_device();
      return std::string();
    } catch (const base::SystemError& error) {
      if (std::getenv("WEFT_TEST_NEEDS_GPU") != nullptr) throw;  // as tools/gpu_check.sh requires
      return std::string(error.what());
    }
  }();
  return kReason;
}

const std::vector<DeviceKind>& all_devices() {
  static const std::vector<DeviceKind> kAll = [] {
    std::vector<DeviceKind> all{DeviceKind::Cpu, DeviceKind::HiddenCpu};
    if (why_no_gpu().empty()) all.push_back(DeviceKind::Cuda);
    return all;
  }();
  return kAll;
}

std::unique_ptr<tensor::Device> make_device(DeviceKind kind, int threads) {
  switch (kind) {
    case DeviceKind::Cpu:
      return kernels::make_cpu_device(threads);
    case DeviceKind::HiddenCpu:
      return make_hidden_device(threads);
    case DeviceKind::Cuda:
      return kernels::make_cuda_device();
  }
  UNREACHABLE("a device");
}

}  // namespace weft::devices
