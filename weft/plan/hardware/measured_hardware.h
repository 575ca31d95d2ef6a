// Hardware profile of this machine from timings and one calibrated run.
//
// Advertised numbers are ceilings timed here. Calibrated numbers make the planner's kernels take
// the time of the run's operations, class by class. Numbers that one machine cannot give come from
// the user, from the profile of a similar machine, or from assumptions; each number states its
// source.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/config/config.h"
#include "weft/plan/hardware/calibration.h"
#include "weft/plan/hardware/hardware.h"

namespace weft::plan {

// Product (m, k) x (k, n), alone on the device.
struct TimedProduct {
  double m = 0, n = 0, k = 0;
  double seconds = 0;
};

// Rates per second of one rank's device.
struct TimedMachine {
  std::string summary;  // description: "Neoverse-V1, 1 core a rank"
  config::DeviceKind device = config::DeviceKind::Cpu;
  double multiprocessors = 0;  // or cores of a rank
  double ranks = 0;            // ranks on this machine
  double memory_bytes = 0, reserved_bytes = 0;
  double host_memory_bytes = 0;  // a GPU's share of its host; 0: processor cores
  double host_memory_free = 0;   // free share of it
  double host_copy_rate = 0;     // bytes read and written by the host's cores, a GPU's share
  PerFormat flop_rate;           // large product; 0: unsupported
  double copy_rate = 0;          // bytes read and written
  // Bytes to or from host memory; in both directions at once, per direction.
  double link_rate = 0, link_rate_both = 0;
  double launch_seconds = 0;  // host time per kernel
  // Products with few rows, in the format of the calibrated run.
  std::vector<TimedProduct> products = {};
};

// Sources of numbers that this machine cannot give.
struct TellsRest {
  std::optional<Hardware> like;         // similar profile
  std::map<std::string, double> given;  // by key; takes precedence
};

struct MeasuredHardware {
  Hardware hardware;
  std::map<std::string, std::string> sources;  // by key
  std::vector<std::string> assumed;            // keys without a measurement or a statement
};

// `config`: judged, the run of the calibration. ConfigError for an unknown key, a GPU without a
// similar profile, or missing results for products or memory.
MeasuredHardware measured_hardware(const config::Config& config,
                                   const Calibration& calibration,
                                   const TimedMachine& machine,
                                   const TellsRest& rest);

// Hardware file with the source of each number. `made`: line on the time and tool.
std::string hardware_yaml(const MeasuredHardware& measured, const std::string& made);

// Parses "nic_gbps=25". ConfigError for a key that hardware files lack.
std::pair<std::string, double> parse_given(const std::string& word);

}  // namespace weft::plan
