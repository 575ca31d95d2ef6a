// Devices for tests: tables of tests take one as a parameter.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/tensor/pool.h"
#include "weft/tensor/stream.h"

namespace weft::devices {

// Cpu: the engine's. HiddenCpu: CPU whose device memory the host cannot address (see
// hidden_device_support.h): a missing upload or download crashes on it. Cuda: the first GPU.
enum class DeviceKind { Cpu, HiddenCpu, Cuda };
// Available devices: all except Cuda without a GPU, for which a skipped test gives the reason.
const std::vector<DeviceKind>& all_devices();
// Reason for the lack of a GPU; empty: one is present. With WEFT_TEST_NEEDS_GPU in the environment
// the program ends instead, so that tables of tests are never silently short.
const std::string& why_no_gpu();

std::string name_of(DeviceKind kind);
std::unique_ptr<tensor::Device> make_device(DeviceKind kind, int threads = 1);

// Device with a pool and one Alone stream, for tests of single operations.
struct Workbench {
  explicit Workbench(int threads = 1, DeviceKind kind = DeviceKind::Cpu)
      : device(make_device(kind, threads)),
        pool(*device),
        stream(device->make_stream("s", tensor::StreamRole::Alone)) {}

  std::unique_ptr<tensor::Device> device;
  tensor::Pool pool;
  std::unique_ptr<tensor::Stream> stream;
};

}  // namespace weft::devices
