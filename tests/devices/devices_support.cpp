#include "tests/devices/devices_support.h"

#include "tests/devices/hidden_device_support.h"
#include "weft/base/check.h"
#include "weft/kernels/device.h"

namespace weft::devices {

std::string name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::Cpu:
      return "Cpu";
    case DeviceKind::HiddenCpu:
      return "HiddenCpu";
  }
  UNREACHABLE("a device");
}

std::unique_ptr<tensor::Device> make_device(DeviceKind kind, int threads) {
  switch (kind) {
    case DeviceKind::Cpu:
      return kernels::make_cpu_device(threads);
    case DeviceKind::HiddenCpu:
      return make_hidden_device(threads);
  }
  UNREACHABLE("a device");
}

}  // namespace weft::devices
