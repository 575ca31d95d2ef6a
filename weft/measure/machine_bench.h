// What a rank's device and its host can do, for a hardware profile of the machine at hand.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "weft/config/config.h"
#include "weft/plan/measured_hardware.h"

namespace weft::measure {

struct MachineBenchRequest {
  const config::Config& config;  // judged: its device, threads and number format
  std::function<void(const std::string& what)> note;
  const std::atomic<bool>* stop = nullptr;
};

// Rates alone: who the machine is and how much memory it has, the caller knows. Some seconds.
// Stopped where it was told to. SystemError where there is no such device.
plan::TimedMachine bench_machine(const MachineBenchRequest& request);

}  // namespace weft::measure
