// Bench of a rank's device and its host, for a hardware profile of this machine.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/hardware/measured_hardware.h"

namespace weft::measure {

struct MachineBenchRequest {
  const config::Config& config;  // judged; gives device, threads and number format
  std::function<void(const std::string& what)> note;
  const std::atomic<bool>* stop = nullptr;
};

// Measures rates only; the caller knows the machine's name and memory. Takes some seconds. Throws
// Stopped when told to stop; SystemError without such a device.
plan::TimedMachine bench_machine(const MachineBenchRequest& request);

}  // namespace weft::measure
