// The devices that tests run on: tables of tests take one as a parameter.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/tensor/pool.h"
#include "weft/tensor/stream.h"

namespace weft::devices {

// Cpu: the engine's own. HiddenCpu: a CPU whose device memory the host cannot touch (see
// hidden_device_support.h): what forgets an upload or a download dies on it. Cuda: the first GPU.
enum class DeviceKind { Cpu, HiddenCpu, Cuda };
// Those that are there: without a GPU all but Cuda, and a test that is skipped says why.
const std::vector<DeviceKind>& all_devices();
// Why there is no GPU to test on; empty where there is one. With WEFT_TEST_NEEDS_GPU in the
// environment the program ends instead: tables of tests would be short without a word.
const std::string& why_no_gpu();

std::string name_of(DeviceKind kind);
std::unique_ptr<tensor::Device> make_device(DeviceKind kind, int threads = 1);

// A device with a pool and one stream that is alone: what a test of single operations needs.
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
