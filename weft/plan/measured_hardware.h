// A hardware profile of the machine at hand: what was timed on it, and what one run of it showed.
//
// Advertised numbers are ceilings that were timed here. Calibrated ones are those at which the
// planner's kernels take as long as the operations of the calibrated run did, class by class. What
// one machine cannot tell is given by the user, taken from the profile of a machine like it, or
// assumed; every number says which.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/calibration.h"
#include "weft/plan/hardware.h"

namespace weft::plan {

// A product (m, k) x (k, n), alone on the device.
struct TimedProduct {
  double m = 0, n = 0, k = 0;
  double seconds = 0;
};

// Rates are a second, of what one rank computes on.
struct TimedMachine {
  std::string summary;  // what it is: "Neoverse-V1, 1 core a rank"
  config::DeviceKind device = config::DeviceKind::Cpu;
  double multiprocessors = 0;  // or cores of a rank
  double ranks = 0;            // of such a rank, on this machine
  double memory_bytes = 0, reserved_bytes = 0;
  double host_memory_bytes = 0;  // of a GPU's share of its host; 0 of processor cores
  double host_memory_free = 0;   // of it, a share
  double host_copy_rate = 0;     // bytes read and written by the host's cores, a share
  std::array<double, kNumbers> flop_rate = {};  // of a large product; 0: it cannot compute it
  double copy_rate = 0;                         // bytes read and written
  double link_rate = 0,
         link_rate_both = 0;                // bytes to or from the host's memory; at once, each way
  double launch_seconds = 0;                // of the host, for a kernel
  std::vector<TimedProduct> products = {};  // of few rows, in the number of the calibrated run
};

// Who says the numbers that this machine does not.
struct TellsRest {
  std::optional<Hardware> like;         // a profile
  std::map<std::string, double> given;  // by key; before all others
};

struct MeasuredHardware {
  Hardware hardware;
  std::map<std::string, std::string> sources;  // of every key
  std::vector<std::string> assumed;            // keys that nobody has measured or said
};

// `config` is judged, and what the calibration was made of. ConfigError where a key is unknown,
// where a GPU is like none, and where nothing could be told of products or memory.
MeasuredHardware measured_hardware(const config::Config& config,
                                   const Calibration& calibration,
                                   const TimedMachine& machine,
                                   const TellsRest& rest);

// A hardware file, with where each number is from. `made` is a line on when and by what.
std::string hardware_yaml(const MeasuredHardware& measured, const std::string& made);

// "nic_gbps=25" as a key and its number. ConfigError where it is none of a hardware file.
std::pair<std::string, double> parse_given(const std::string& word);

}  // namespace weft::plan
