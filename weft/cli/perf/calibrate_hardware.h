// weft calibrate --hardware: a hardware profile of the machine at hand.
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
  std::string file;                // empty: none is wanted
  std::string like;                // a known GPU or a file; empty: the one of this card
  std::vector<std::string> given;  // "nic_gbps=25"
  base::Overwrite overwrite = base::Overwrite::No;  // the file

  bool is_wanted() const { return !file.empty(); }
};

// What can be told before anything is measured. ConfigError where the run cannot tell a profile, or
// what is given is none.
plan::TellsRest tells_rest(const HardwareOptions& options, const config::Config& judged);

struct WrittenHardware {
  plan::MeasuredHardware measured;
  std::string file;
  double planned_seconds = 0;  // of the calibrated run, priced with it
};

// Measures, and writes the file. ConfigError where what was measured is no hardware file: nothing
// is written then. Stopped (measure/device_timer.h) where it was told to.
WrittenHardware write_hardware(const HardwareOptions& options,
                               const plan::TellsRest& rest,
                               const config::Config& judged,
                               const plan::Calibration& calibration,
                               const std::function<void(const std::string&)>& note,
                               const std::atomic<bool>& stop);

std::string to_text(const WrittenHardware& written, double measured_seconds);
base::Json to_json(const WrittenHardware& written);

}  // namespace weft::cli
