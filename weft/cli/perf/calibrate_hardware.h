// weft calibrate --hardware: hardware profile of this machine.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "weft/base/files/overwrite.h"
#include "weft/base/json.h"
#include "weft/plan/hardware/measured_hardware.h"

namespace weft::cli {

struct HardwareOptions {
  std::string file;                                 // empty: no profile
  std::string like;                                 // a known GPU or a file; empty: this GPU's
  std::vector<std::string> given;                   // "nic_gbps=25"
  base::Overwrite overwrite = base::Overwrite::No;  // applies to `file`

  bool is_wanted() const { return !file.empty(); }
};

// Checks before any measurement. ConfigError if the run cannot give a profile, or a given value is
// invalid.
plan::TellsRest tells_rest(const HardwareOptions& options, const config::Config& judged);

struct WrittenHardware {
  plan::MeasuredHardware measured;
  std::string file;
  double planned_seconds = 0;  // calibrated run, priced with the profile
};

// Measures and writes the file. ConfigError, without a file, if the result is no valid hardware
// file. Throws Stopped (measure/device/device_timer.h) when told to stop.
WrittenHardware write_hardware(const HardwareOptions& options,
                               const plan::TellsRest& rest,
                               const config::Config& judged,
                               const plan::Calibration& calibration,
                               const std::function<void(const std::string&)>& note,
                               const std::atomic<bool>& stop);

std::string to_text(const WrittenHardware& written, double measured_seconds);
base::Json to_json(const WrittenHardware& written);

}  // namespace weft::cli
